import { Link } from "wouter-preact";
import { routes } from "../../browser/routes";
import { NO_NAME } from "./level";

/** Breadcrumb of a folder. */
export function Crumbs({ prefix }: { prefix: string }) {
  const parts = prefix.split("/").slice(0, -1);
  return (
    <nav class="lake-crumbs" aria-label="Folder">
      {parts.length === 0 ? <span aria-current="page">Lake</span> : <Link href={routes.lake()}>Lake</Link>}
      {parts.map((part, at) => {
        const to = `${parts.slice(0, at + 1).join("/")}/`;
        return (
          <span key={to} class="lake-crumb">
            <span class="dim" aria-hidden="true">
              /
            </span>
            {at === parts.length - 1 ? (
              <span aria-current="page">{part || NO_NAME}</span>
            ) : (
              <Link href={routes.lake(to)}>{part || NO_NAME}</Link>
            )}
          </span>
        );
      })}
    </nav>
  );
}
