import { CircleAlert, CircleCheck, TriangleAlert } from "lucide-preact";
import { MessageText } from "../../components/message-text";
import { counted } from "../../format/number";
import type { Checked, Shown } from "./validation";

/** Maximum number of listed problems. */
const SHOWN_MAX = 100;

function Summary({ problems, checked }: { problems: Shown[]; checked: Checked }) {
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const warnings = problems.length - errors;
  if (errors > 0)
    return (
      <>
        <CircleAlert class="config-bad" aria-hidden="true" />
        {counted(errors, "problem")}
        {warnings > 0 && `, ${counted(warnings, "warning")}`}
      </>
    );
  if (checked.failure) return <>Couldn't validate the config: {checked.failure.message}.</>;
  if (!checked.verdict) return <>Validating</>;
  return (
    <>
      {warnings > 0 ? (
        <TriangleAlert class="config-warn" aria-hidden="true" />
      ) : (
        <CircleCheck class="config-ok" aria-hidden="true" />
      )}
      {warnings > 0 && `${counted(warnings, "warning")}. `}
      {checked.verdict.expressions_checked
        ? "The config is valid."
        : "No problems found. Expressions weren't checked because no worker is available."}
    </>
  );
}

/** Problems with their lines; a click selects the line. */
export function Problems({
  problems,
  checked,
  onShow,
}: {
  problems: Shown[];
  checked: Checked;
  onShow: (problem: Shown) => void;
}) {
  return (
    <section class="config-problems" aria-label="Problems">
      <p class="row config-problems-head" role="status">
        <Summary problems={problems} checked={checked} />
        {checked.busy && checked.verdict && <span class="dim">· validating</span>}
      </p>
      {problems.length > 0 && (
        <ul>
          {problems.slice(0, SHOWN_MAX).map((problem) => (
            <li key={`${problem.path}${problem.message}`}>
              <button type="button" class="config-problem" onClick={() => onShow(problem)}>
                <span class="num dim">
                  {problem.line}:{problem.column}
                </span>
                <span>
                  {problem.severity === "warning" && <span class="config-warn">Warning: </span>}
                  <MessageText text={problem.message} />
                </span>
                {problem.path && <code class="dim cut">{problem.path}</code>}
              </button>
            </li>
          ))}
        </ul>
      )}
      {problems.length > SHOWN_MAX && <p class="dim">Showing the first {SHOWN_MAX}.</p>}
    </section>
  );
}
