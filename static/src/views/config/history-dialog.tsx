import { keepPreviousData, useQuery } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import type { ConfigVersion } from "../../api/types";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Diff } from "../../components/editor";
import { Empty, Failed, Skeleton } from "../../components/states";
import { Badge } from "../../components/status";
import { Time } from "../../components/time";
import { bytes } from "../../format/number";
import { VERSIONS_MAX, VERSIONS_PAGE, versionsQuery, versionTextQuery } from "./service";

const DIFF_PX = 380;

/** Says where a version came from. */
export function changeText({ change, restored, address }: ConfigVersion): string {
  const from = address ? ` from ${address}` : "";
  if (change === "found") return "Created, imported or changed outside the config editor";
  return restored ? `Version ${restored} restored${from}` : `Saved${from}`;
}

const nameOf = ({ version }: ConfigVersion): string => (version ? `Version ${version}` : "Stored config");

/** Says why a version has none before it. */
const firstText = ({ version }: ConfigVersion): string =>
  version === 1 || version === null ? "nothing: it is the first" : "nothing: older versions aren't kept";

interface Props {
  slug: string;
  /** The stored config. */
  current: string;
  /** There are unsaved changes, which a restored version would replace. */
  dirty: boolean;
  onRestore: (version: number, text: string) => void;
  onClose: () => void;
}

/** The configs that the pipeline had, with what each changed; an earlier one can be restored. */
export function HistoryDialog({ slug, current, dirty, onRestore, onClose }: Props) {
  const [limit, setLimit] = useState(VERSIONS_PAGE);
  const [picked, setPicked] = useState<number | null>();
  const [against, setAgainst] = useState<"previous" | "current">("previous");
  // One more than is listed, with which the last one is compared.
  const asked = Math.min(limit + 1, VERSIONS_MAX);
  const { data, error, refetch } = useQuery({ ...versionsQuery(slug, asked), placeholderData: keepPreviousData });
  const loaded = data?.versions ?? [];
  const versions = loaded.slice(0, limit);
  const at = Math.max(
    0,
    versions.findIndex(({ version }) => version === picked),
  );
  const [shown, before] = [versions[at], loaded[at + 1]];
  const text = useQuery(versionTextQuery(slug, shown?.version, current));
  const previous = useQuery(versionTextQuery(slug, before?.version, before ? current : ""));
  const withCurrent = against === "current" && shown?.current === false;
  const failure = text.error ?? (withCurrent ? null : previous.error);
  const [older, newer] = withCurrent ? [text.data, current] : [previous.data, text.data];
  const restore = () => {
    if (shown?.version && text.data !== undefined) onRestore(shown.version, text.data);
  };
  return (
    <Dialog
      title="Config history"
      kind="wide"
      onClose={onClose}
      actions={
        <>
          {dirty && <span class="secondary grow">Save or discard your changes to restore a version.</span>}
          <Button onClick={onClose}>Close</Button>
          <Button
            variant="primary"
            disabled={dirty || !shown?.version || shown.current || text.data === undefined}
            onClick={restore}
          >
            {shown?.version && !shown.current ? `Restore version ${shown.version}…` : "Restore…"}
          </Button>
        </>
      }
    >
      {error && !data ? (
        <Failed title="Couldn't load the history" error={error} onRetry={() => void refetch()} />
      ) : !shown ? (
        data ? (
          <Empty title="No versions yet">Each save of the config is kept here.</Empty>
        ) : (
          <Skeleton lines={8} label="Loading the history" />
        )
      ) : (
        <div class="config-history">
          <div class="config-versions" role="group" aria-label="Versions">
            {versions.map((one) => (
              <button
                key={one.version}
                type="button"
                class="config-version"
                aria-pressed={one === shown}
                onClick={() => setPicked(one.version)}
              >
                <span class="row">
                  <strong>{nameOf(one)}</strong>
                  {one.current && <Badge tone="accent">current</Badge>}
                  <span class="grow" />
                  <span class="dim">{bytes(one.bytes)}</span>
                </span>
                <span class="secondary">
                  <Time at={one.at} /> · {changeText(one)}
                </span>
              </button>
            ))}
            {data && data.total > versions.length && limit < VERSIONS_MAX && (
              <Button variant="quiet" onClick={() => setLimit(VERSIONS_MAX)}>
                Show older versions
              </Button>
            )}
          </div>
          <div class="config-version-changes">
            <label class="row">
              <span class="secondary">Compare {nameOf(shown).toLowerCase()} with</span>
              <select
                class="input"
                value={withCurrent ? "current" : "previous"}
                onChange={(event) => setAgainst(event.currentTarget.value === "current" ? "current" : "previous")}
              >
                <option value="previous">{before ? nameOf(before).toLowerCase() : firstText(shown)}</option>
                {!shown.current && <option value="current">the current version</option>}
              </select>
            </label>
            {failure ? (
              <Failed
                title="Couldn't load the version"
                error={failure}
                onRetry={() => void text.refetch().then(() => previous.refetch())}
              />
            ) : older === undefined || newer === undefined ? (
              <Skeleton lines={8} label="Loading the version" />
            ) : (
              <div class="config-diff">
                <Diff
                  key={`${String(shown.version)} ${against}`}
                  label="Changes"
                  language="json"
                  before={older}
                  after={newer}
                  beforeName={withCurrent ? nameOf(shown) : "Before"}
                  afterName={withCurrent ? "Current version" : nameOf(shown)}
                  height={DIFF_PX}
                />
              </div>
            )}
          </div>
        </div>
      )}
    </Dialog>
  );
}
