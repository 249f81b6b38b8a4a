/** Prevents uploads below `pipelines/` outside a pipeline's folder, which would appear as an unusable pipeline. */
import { useQuery } from "@tanstack/preact-query";
import { useLocation } from "wouter-preact";
import { client, pipelinesQuery } from "../../api/queries";
import { routes } from "../../browser/routes";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { csvsOf } from "../../uploads/accept";
import { droppedFiles } from "../../uploads/dropped";
import { PIPELINES, strayOf } from "../../uploads/keys";

interface Listed {
  pipelines: { slug: string }[];
  truncated?: boolean;
}

/** An incomplete listing refuses nothing. */
const slugsOf = (listed: Listed | undefined): Set<string> | undefined =>
  listed && !listed.truncated ? new Set(listed.pipelines.map(({ slug }) => slug)) : undefined;

/** Folder of the first key outside all pipelines, by a fresh listing. */
export async function strayAmong(keys: string[]): Promise<string | undefined> {
  if (!keys.some((key) => key.startsWith(PIPELINES))) return undefined;
  const listed = await client.fetchQuery({ ...pipelinesQuery(), staleTime: 0 }).catch(() => undefined);
  const slugs = Array.isArray(listed) ? undefined : slugsOf(listed);
  return slugs && strayOf(keys, slugs);
}

/** Why the keys are refused, if so. */
export function useStrayProblem(keys: string[]): string | undefined {
  const { data } = useQuery(pipelinesQuery());
  const slugs = slugsOf(data);
  const folder = slugs && strayOf(keys, slugs);
  return folder === undefined ? undefined : strayWords(folder);
}

const strayWords = (folder: string): string =>
  folder === ""
    ? "files in pipelines/ must be in the folder of a pipeline"
    : `there is no pipeline ${folder}; pipelines/ contains only folders of pipelines`;

interface Props {
  /** Folder without a pipeline; empty: no folder at all. */
  folder: string;
  files: File[];
  onClose: () => void;
}

/** Explains why nothing was uploaded and offers alternatives. */
export function StrayDialog({ folder, files, onClose }: Props) {
  const [, go] = useLocation();
  const csvs = csvsOf(files);
  const make = () => {
    droppedFiles.value = csvs;
    go(routes.fromCsv());
  };
  return (
    <Dialog
      title="Nothing was uploaded"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {csvs.length > 0 && (
            <Button variant="primary" onClick={make}>
              {csvs.length === 1 ? "New pipeline from this file" : "New pipeline from these files"}
            </Button>
          )}
        </>
      }
    >
      <p>
        Files in <code>{PIPELINES}</code> must be in the folder of a pipeline
        {folder !== "" && (
          <>
            , but there is no pipeline <code>{folder}</code>
          </>
        )}
        .
      </p>
      <p>
        {csvs.length > 0 ? "Create a pipeline from the files, or open" : "Open"} the folder of an existing pipeline and
        upload them there.
      </p>
    </Dialog>
  );
}
