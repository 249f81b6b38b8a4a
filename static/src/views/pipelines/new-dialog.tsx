import { useQueryClient } from "@tanstack/preact-query";
import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { TextField } from "../../components/field";
import { withRemedy } from "../../format/remedies";
import { freeSlug, SLUG_HINT, slugFault, slugFrom } from "../../format/slug";
import { routes } from "../../browser/routes";
import { DropCsv } from "./drop";
import { ImportPipeline } from "./import";
import { makeBlank, makeSample, SAMPLE_SLUG } from "./make";

type CreationMethod = "csv" | "blank" | "sample" | "import";

const METHODS: Record<CreationMethod, string> = { csv: "From CSV", blank: "Blank", sample: "Sample", import: "Import" };

/** Slug field, validated while typing. */
function useSlug(first: string, taken: readonly string[]) {
  const [slug, setSlug] = useState(first);
  const [refused, setRefused] = useState<string>();
  const fault = slugFault(slug) ?? (taken.includes(slug) ? `${slug} is taken.` : undefined);
  const change = (text: string) => {
    setSlug(text);
    setRefused(undefined);
  };
  // An empty field isn't an error yet.
  return { slug, change, fault, shown: refused ?? (slug === "" ? undefined : fault), setRefused };
}

function Blank({ taken }: { taken: readonly string[] }) {
  const cache = useQueryClient();
  const [, go] = useLocation();
  const [title, setTitle] = useState("");
  const [own, setOwn] = useState(false);
  const [busy, setBusy] = useState(false);
  const { slug, change, fault, shown, setRefused } = useSlug("", taken);
  const make = async () => {
    setBusy(true);
    try {
      await makeBlank(cache, slug, title.trim());
      go(routes.pipeline(slug));
    } catch (error) {
      setRefused(withRemedy(error));
      setBusy(false);
    }
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (!fault && !busy) void make();
      }}
    >
      <TextField
        label="Title"
        value={title}
        hint="Shown instead of the URL name. Optional."
        onInput={(event) => {
          setTitle(event.currentTarget.value);
          if (!own) change(slugFrom(event.currentTarget.value));
        }}
      />
      <TextField
        label="URL name"
        class="mono"
        value={slug}
        error={shown}
        hint={SLUG_HINT}
        onInput={(event) => {
          setOwn(event.currentTarget.value !== "");
          change(event.currentTarget.value);
        }}
      />
      <p class="secondary">Starts with a config without tables.</p>
      <Button variant="primary" type="submit" busy={busy} disabled={fault !== undefined} class="pipelines-submit">
        Create
      </Button>
    </form>
  );
}

function Sample({ taken }: { taken: readonly string[] }) {
  const cache = useQueryClient();
  const [, go] = useLocation();
  const [busy, setBusy] = useState(false);
  const { slug, change, fault, shown, setRefused } = useSlug(freeSlug(SAMPLE_SLUG, taken), taken);
  const make = async () => {
    setBusy(true);
    try {
      await makeSample(cache, slug);
      go(routes.pipeline(slug));
    } catch (error) {
      setRefused(withRemedy(error));
      setBusy(false);
    }
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (!fault && !busy) void make();
      }}
    >
      <p>
        Flights from New York City in 2013: 16 CSVs, five tables with 367,687 rows, and a dashboard. It can be deleted
        at any time.
      </p>
      <TextField
        label="URL name"
        class="mono"
        value={slug}
        error={shown}
        hint={SLUG_HINT}
        onInput={(event) => change(event.currentTarget.value)}
      />
      <Button variant="primary" type="submit" busy={busy} disabled={fault !== undefined} class="pipelines-submit">
        Create and run
      </Button>
    </form>
  );
}

/** Methods to create a pipeline. */
export function NewPipeline({ taken, onClose }: { taken: readonly string[]; onClose: () => void }) {
  const [way, setWay] = useState<CreationMethod>("csv");
  // A click outside doesn't close the dialog during an import.
  const [sending, setSending] = useState(false);
  return (
    <Dialog title="New pipeline" closable={!sending} onClose={onClose}>
      <div class="pipelines-ways" role="group" aria-label="Method">
        {(Object.keys(METHODS) as CreationMethod[]).map((one) => (
          <Button
            key={one}
            variant={one === way ? "plain" : "quiet"}
            aria-pressed={one === way}
            disabled={sending && one !== way}
            onClick={() => setWay(one)}
          >
            {METHODS[one]}
          </Button>
        ))}
      </div>
      <div class="pipelines-way">
        {way === "csv" && <DropCsv />}
        {way === "blank" && <Blank taken={taken} />}
        {way === "sample" && <Sample taken={taken} />}
        {way === "import" && <ImportPipeline taken={taken} onSending={setSending} />}
      </div>
    </Dialog>
  );
}
