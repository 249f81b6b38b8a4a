import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { useSearch } from "wouter-preact";
import { Button } from "../../components/button";
import { Page } from "../../components/page";
import { Failed, Skeleton } from "../../components/states";
import { Bar } from "../../components/status";
import { bytes } from "../../format/number";
import { droppedFiles } from "../../uploads/dropped";
import { FromProposal } from "./form";
import { useProposal, type Proposal } from "./proposal";
import { SourceStep } from "./source";
import type { Source } from "./staging";
import "./new.css";

/** Wizard for a new pipeline from a CSV. */
export default function FromCsvView() {
  const key = new URLSearchParams(useSearch()).get("key");
  const files = useSignal<File[]>([]);
  useEffect(() => {
    if (droppedFiles.value.length === 0) return;
    files.value = droppedFiles.value;
    droppedFiles.value = [];
  }, [files]);
  const chosen = files.value;
  const source = useMemo<Source | undefined>(() => {
    if (chosen.length > 0) return { kind: "files", files: chosen };
    return key ? { kind: "lake", key } : undefined;
  }, [chosen, key]);
  const [proposal, again] = useProposal(source);
  const start = () => {
    files.value = [];
    if (key) history.replaceState(null, "", location.pathname);
  };
  return (
    <Page title="New pipeline from CSV" heading="New pipeline from CSV">
      {source === undefined ? (
        <SourceStep onFiles={(taken) => (files.value = taken)} />
      ) : (
        <Proposed source={source} proposal={proposal.value} onAgain={again} onOther={start} />
      )}
    </Page>
  );
}

interface ProposedProps {
  source: Source;
  proposal: Proposal | undefined;
  onAgain: () => void;
  onOther: () => void;
}

function Proposed({ source, proposal, onAgain, onOther }: ProposedProps) {
  const name = source.kind === "files" ? (source.files[0]?.name ?? "") : source.key;
  if (!proposal || proposal.phase === "staging" || proposal.phase === "inferring")
    return <Looking name={name} proposal={proposal} />;
  if (proposal.phase === "failed")
    return (
      <Failed
        title={`${name} couldn't be read`}
        error={proposal.error}
        onRetry={onAgain}
        actions={<Button onClick={onOther}>Choose another file</Button>}
      />
    );
  return <FromProposal key={proposal.staged.key} source={source} proposal={proposal} onOther={onOther} />;
}

function Looking({ name, proposal }: { name: string; proposal: Proposal | undefined }) {
  const sending = proposal?.phase === "staging" && proposal.total > 0;
  return (
    <div class="stack" role="status">
      <p>
        {sending ? (
          <>
            Uploading a sample of <code>{name}</code>:{" "}
            <span class="num">
              {bytes(proposal.sent)} of {bytes(proposal.total)}
            </span>
          </>
        ) : (
          <>
            Analyzing <code>{name}</code>
          </>
        )}
      </p>
      {sending && <Bar done={proposal.sent} total={proposal.total} label="Sent" />}
      <Skeleton lines={12} />
    </div>
  );
}
