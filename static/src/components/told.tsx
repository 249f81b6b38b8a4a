import type { ComponentChildren } from "preact";

/** A message of the service: what it puts between backticks are names and values, shown as such. */
export function Told({ text }: { text: string }): ComponentChildren {
  return text.split("`").map((part, at, parts) => {
    // An odd one at the end opens nothing.
    if (at % 2 === 0) return part;
    return at === parts.length - 1 ? `\`${part}` : <code key={at}>{part}</code>;
  });
}
