import type { ComponentChildren } from "preact";

/** A message of the service; text between backticks is shown as code. */
export function MessageText({ text }: { text: string }): ComponentChildren {
  return text.split("`").map((part, at, parts) => {
    // An unpaired backtick at the end is text.
    if (at % 2 === 0) return part;
    return at === parts.length - 1 ? `\`${part}` : <code key={at}>{part}</code>;
  });
}
