import { useQuery } from "@tanstack/preact-query";
import { Plus, Upload } from "lucide-preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { settingsQuery } from "../../api/queries";
import { Button } from "../../components/button";
import { SelectField, TextField } from "../../components/field";
import { Page } from "../../components/page";
import { Empty, Failed, Note, Skeleton } from "../../components/states";
import { counted } from "../../format/number";
import { useQueryParams } from "../../browser/query-params";
import { useShortcuts } from "../../browser/shortcuts";
import { PauseNotice } from "../../shell/pause";
import { askForFiles } from "../../shell/upload-request";
import { Card } from "./card";
import { arranged, cardsQuery, SORTINGS, type PipelineCard, type Sorting } from "./cards";
import { EmptyWorkspace } from "./empty";
import { NewPipeline } from "./new-dialog";
import "./pipelines.css";

/** Cards that are rendered initially, and with each scroll to the end. */
const CARDS_PER_PAGE = 60;

const isSorting = (text: string | null): text is Sorting => text !== null && Object.hasOwn(SORTINGS, text);

function Cards({ cards, starred }: { cards: PipelineCard[]; starred: readonly string[] }) {
  const [drawn, setDrawn] = useState(CARDS_PER_PAGE);
  const end = useRef<HTMLDivElement>(null);
  const more = drawn < cards.length;
  useEffect(() => {
    const node = end.current;
    if (!node) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) setDrawn((before) => before + CARDS_PER_PAGE);
      },
      { rootMargin: "1200px" },
    );
    observer.observe(node);
    return () => observer.disconnect();
  }, [drawn, more]);
  return (
    <>
      <ul class="pipelines-cards" aria-label="Pipelines">
        {cards.slice(0, drawn).map((card) => (
          <Card key={card.slug} card={card} starred={starred.includes(card.slug)} />
        ))}
      </ul>
      {more && (
        <div ref={end} class="dim">
          {counted(cards.length - drawn, "more pipeline")}
        </div>
      )}
    </>
  );
}

function useArranging() {
  const [params, set] = useQueryParams();
  const sort = params.get("sort");
  const sorting: Sorting = isSorting(sort) ? sort : "starred";
  return { search: params.get("q") ?? "", sorting, set };
}

/** Pipelines of the workspace. */
export default function PipelinesView() {
  const { data, error, isPending, refetch } = useQuery(cardsQuery());
  const { data: settings } = useQuery(settingsQuery());
  const { search, sorting, set } = useArranging();
  const [making, setMaking] = useState(false);
  const field = useRef<HTMLDivElement>(null);
  useShortcuts([
    { keys: "n", does: "New pipeline", run: () => setMaking(true) },
    { keys: "/", does: "Search pipelines", run: () => field.current?.querySelector("input")?.focus() },
  ]);
  const all = data?.pipelines ?? [];
  const starred = settings?.starred ?? [];
  const shown = arranged(all, search, sorting, starred);
  const dialog = making && <NewPipeline taken={all.map(({ slug }) => slug)} onClose={() => setMaking(false)} />;
  if (data && all.length === 0) {
    return (
      <Page title="Pipelines">
        <EmptyWorkspace onMore={() => setMaking(true)} />
        {dialog}
      </Page>
    );
  }
  return (
    <Page
      title="Pipelines"
      heading="Pipelines"
      actions={
        <>
          <div class="pipelines-search" ref={field}>
            <TextField
              label="Search pipelines"
              bare
              type="search"
              placeholder="Search"
              value={search}
              onInput={(event) => set("q", event.currentTarget.value)}
            />
          </div>
          <SelectField label="Sort" bare value={sorting} onChange={(event) => set("sort", event.currentTarget.value)}>
            {Object.entries(SORTINGS).map(([name, words]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </SelectField>
          <Button icon={<Upload />} onClick={() => askForFiles(undefined)}>
            Upload
          </Button>
          <Button variant="primary" icon={<Plus />} onClick={() => setMaking(true)}>
            New pipeline
          </Button>
        </>
      }
    >
      <PauseNotice />
      {isPending && <CardSkeletons />}
      {error && !data && <Failed title="Couldn't load the pipelines" error={error} onRetry={() => void refetch()} />}
      {data?.truncated && <Note>Only the first {counted(all.length, "pipeline")} are shown. Open others by URL.</Note>}
      {data && shown.length === 0 && (
        <Empty title="No pipelines found" actions={<Button onClick={() => set("q", "")}>Show all</Button>}>
          No slug or title contains “{search}”.
        </Empty>
      )}
      {shown.length > 0 && <Cards key={`${search} ${sorting}`} cards={shown} starred={starred} />}
      {dialog}
    </Page>
  );
}

function CardSkeletons() {
  return (
    <ul class="pipelines-cards" aria-hidden="true">
      {[0, 1, 2].map((one) => (
        <li key={one} class="card pipelines-card">
          <Skeleton lines={5} label="Loading the pipelines" />
        </li>
      ))}
    </ul>
  );
}
