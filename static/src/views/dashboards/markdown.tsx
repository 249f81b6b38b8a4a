/** Renders CommonMark. HTML is shown as text; links lead to the web, to mail, or within Lakemill. */
import type { Token, Tokens, TokensList } from "marked";
import type { ComponentChildren } from "preact";
import "./markdown.css";

/** The URL of a safe link; undefined for others. */
export function safeHref(href: string): string | undefined {
  // Characters that browsers ignore before a scheme are removed first.

  const bare = href.replace(/[\u0000-\u0020\u007f-\u009f\u200b-\u200f\u2028\u2029\ufeff]/g, "");
  if (/^(?:https?:\/\/|mailto:)/i.test(bare)) return bare;
  if (/^[a-z][a-z0-9+.-]*:/i.test(bare) || bare.startsWith("//") || bare.includes("\\")) return undefined;
  return bare === "" ? undefined : bare;
}

function Anchor({ href, children }: { href: string; children: ComponentChildren }) {
  const safe = safeHref(href);
  if (!safe) return <>{children}</>;
  const outside = /^(?:https?:|mailto:)/i.test(safe);
  return (
    <a href={safe} {...(outside ? { rel: "noopener noreferrer nofollow", target: "_blank" } : {})}>
      {children}
    </a>
  );
}

/** The parser doesn't decode entities. */
const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: "\u00a0" };
const plain = (text: string): string =>
  text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (all, name: string) => ENTITIES[name] ?? all);

function Inline({ tokens }: { tokens: Token[] | undefined }) {
  return (
    <>
      {tokens?.map((token, at) => (
        <InlineToken key={at} token={token} />
      ))}
    </>
  );
}

function InlineToken({ token }: { token: Tokens.Generic }) {
  const inner = <Inline tokens={token.tokens} />;
  const text = plain(String(token.text ?? token.raw));
  switch (token.type) {
    case "strong":
      return <strong>{inner}</strong>;
    case "em":
      return <em>{inner}</em>;
    case "del":
      return <del>{inner}</del>;
    case "codespan":
      return <code>{String(token.text)}</code>;
    case "br":
      return <br />;
    case "link":
      return <Anchor href={String(token.href)}>{inner}</Anchor>;
    // Remote images would reveal viewers to other sites, so images become links.
    case "image":
      return <Anchor href={String(token.href)}>{text || "image"}</Anchor>;
    case "text":
      return token.tokens ? inner : <>{text}</>;
    case "escape":
      return <>{text}</>;
    case "checkbox":
      return <input type="checkbox" checked={token.checked === true} disabled aria-label="done" />;
    default:
      return <>{token.raw}</>;
  }
}

function Block({ token }: { token: Tokens.Generic }) {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading": {
      // Headings start below the panel's own heading.
      const Rank = `h${Math.min(6, Number(token.depth) + 2)}` as "h3";
      return (
        <Rank class={`dash-md-h${String(token.depth)}`}>
          <Inline tokens={token.tokens} />
        </Rank>
      );
    }
    case "paragraph":
      return (
        <p>
          <Inline tokens={token.tokens} />
        </p>
      );
    case "text":
      return token.tokens ? <Inline tokens={token.tokens} /> : <>{plain(String(token.text))}</>;
    case "code":
      return (
        <pre>
          <code>{String(token.text)}</code>
        </pre>
      );
    case "blockquote":
      return (
        <blockquote>
          <Blocks tokens={token.tokens ?? []} />
        </blockquote>
      );
    case "hr":
      return <hr />;
    case "list":
      return <List token={token as Tokens.List} />;
    case "table":
      return <Table token={token as Tokens.Table} />;
    default:
      return <p>{token.raw}</p>;
  }
}

function List({ token }: { token: Tokens.List }) {
  const items = token.items.map((item, at) => (
    <li key={at}>
      <Blocks tokens={item.tokens} />
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ token }: { token: Tokens.Table }) {
  const side = (at: number) => (token.align[at] === "right" ? "num" : "");
  return (
    <div class="table-box">
      <table class="table">
        <thead>
          <tr>
            {token.header.map((cell, at) => (
              <th key={at} scope="col" class={side(at)}>
                <Inline tokens={cell.tokens} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, at) => (
                <td key={at} class={side(at)}>
                  <Inline tokens={cell.tokens} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Blocks({ tokens }: { tokens: Token[] }) {
  return (
    <>
      {tokens.map((token, at) => (
        <Block key={at} token={token as Tokens.Generic} />
      ))}
    </>
  );
}

export function Markdown({ tokens }: { tokens: TokensList | Token[] }) {
  return (
    <div class="dash-md">
      <Blocks tokens={tokens} />
    </div>
  );
}
