import { Link } from "wouter-preact";
import { places } from "../../browser/places";

/** Where in the lake this is; each part leads there. */
export function Crumbs({ prefix }: { prefix: string }) {
  const parts = prefix.split("/").filter((part) => part !== "");
  return (
    <nav class="lake-crumbs" aria-label="Folder">
      {parts.length === 0 ? <span aria-current="page">Lake</span> : <Link href={places.lake()}>Lake</Link>}
      {parts.map((part, at) => {
        const to = `${parts.slice(0, at + 1).join("/")}/`;
        return (
          <span key={to} class="lake-crumb">
            <span class="dim" aria-hidden="true">
              /
            </span>
            {at === parts.length - 1 ? (
              <span aria-current="page">{part}</span>
            ) : (
              <Link href={places.lake(to)}>{part}</Link>
            )}
          </span>
        );
      })}
    </nav>
  );
}
