import type { ComponentChildren } from "preact";
import { patternOf } from "../format/time-pattern";

/** A message of the service; text between backticks is shown as code, formats of times as people write them. */
export function MessageText({ text }: { text: string }): ComponentChildren {
  return text.split("`").map((part, at, parts) => {
    // An unpaired backtick at the end is text.
    if (at % 2 === 0) return part;
    if (at === parts.length - 1) return `\`${part}`;
    const words = part.startsWith("%") ? patternOf(part) : part;
    return (
      <code key={at} title={words === part ? undefined : part}>
        {words}
      </code>
    );
  });
}
