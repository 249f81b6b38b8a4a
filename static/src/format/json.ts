/**
 * Formats JSON configs: two spaces, and one line for what fits and has no nested objects.
 *
 * Works on tokens, so that numbers and strings stay as typed.
 */
const WIDTH_MAX = 110;

type Node =
  | { kind: "scalar"; text: string }
  | { kind: "array"; items: Node[] }
  | { kind: "object"; entries: [key: string, value: Node][] };

/** A syntax error with its position. */
class NotJson extends Error {
  constructor(
    message: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

const TOKEN =
  /[ \t\r\n]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-]))/y;
/** Deeper than any config; protects the stack. */
const DEPTH_MAX = 200;

class Reader {
  private at = 0;
  constructor(private readonly text: string) {}

  private peek(): { token: string; start: number } | undefined {
    TOKEN.lastIndex = this.at;
    const found = TOKEN.exec(this.text);
    const token = found?.[1] ?? found?.[2] ?? found?.[3];
    return token === undefined ? undefined : { token, start: TOKEN.lastIndex - token.length };
  }

  private fail(expected: string): never {
    const blank = /^[ \t\r\n]*/.exec(this.text.slice(this.at))?.[0].length ?? 0;
    const offset = this.at + blank;
    const rest = this.text.slice(offset);
    const broken = rest.startsWith('"') && !/^"(?:[^"\\\n]|\\.)*"/.test(rest);
    if (broken) throw new NotJson("missing closing quote", offset);
    const found = rest === "" ? "the end" : `\`${/^([\w.+-]+|"[^"\n]{0,24}"?|.)/su.exec(rest)?.[0] ?? ""}\``;
    throw new NotJson(`expected ${expected}, found ${found}`, offset);
  }

  private take(wanted: string, expected: string): void {
    const next = this.peek();
    if (next?.token !== wanted) this.fail(expected);
    this.at = next.start + wanted.length;
  }

  document(): Node {
    const node = this.value(0);
    if (/[^ \t\r\n]/.test(this.text.slice(this.at))) this.fail("the end");
    return node;
  }

  private value(depth: number): Node {
    const next = this.peek();
    if (!next || "}],:".includes(next.token)) return this.fail("a value");
    if (depth > DEPTH_MAX) throw new NotJson(`nested deeper than ${DEPTH_MAX}`, next.start);
    this.at = next.start + next.token.length;
    if (next.token === "{") return this.object(depth);
    return next.token === "[" ? this.array(depth) : { kind: "scalar", text: next.token };
  }

  /** Whether another member follows; the first may be missing. */
  private more(close: string, first: boolean): boolean {
    const next = this.peek();
    if (next?.token === close) {
      this.at = next.start + 1;
      return false;
    }
    if (!first) this.take(",", `\`,\` or \`${close}\``);
    return true;
  }

  private object(depth: number): Node {
    const entries: [string, Node][] = [];
    while (this.more("}", entries.length === 0)) {
      const key = this.peek();
      if (!key?.token.startsWith('"')) return this.fail(entries.length === 0 ? "a name or `}`" : "a name in quotes");
      this.at = key.start + key.token.length;
      this.take(":", "`:`");
      entries.push([key.token, this.value(depth + 1)]);
    }
    return { kind: "object", entries };
  }

  private array(depth: number): Node {
    const items: Node[] = [];
    while (this.more("]", items.length === 0)) items.push(this.value(depth + 1));
    return { kind: "array", items };
  }
}

function inline(node: Node): string {
  if (node.kind === "scalar") return node.text;
  if (node.kind === "array") return `[${node.items.map(inline).join(", ")}]`;
  if (node.entries.length === 0) return "{}";
  return `{ ${node.entries.map(([key, value]) => `${key}: ${inline(value)}`).join(", ")} }`;
}

const values = (node: Node): Node[] =>
  node.kind === "array" ? node.items : node.kind === "object" ? node.entries.map(([, value]) => value) : [];
const holds = (node: Node, is: (one: Node) => boolean): boolean =>
  values(node).some((value) => is(value) || holds(value, is));

/** Lists of objects and nested objects are written on several lines. */
const isFlat = (node: Node): boolean => !holds(node, (value) => value.kind === "object" && value.entries.length > 0);

function printed(node: Node, indent: number, before: number): string {
  const line = inline(node);
  if (isFlat(node) && indent + before + line.length <= WIDTH_MAX) return line;
  const pad = " ".repeat(indent + 2);
  const close = `\n${" ".repeat(indent)}`;
  if (node.kind === "array")
    return `[\n${node.items.map((item) => pad + printed(item, indent + 2, 0)).join(",\n")}${close}]`;
  if (node.kind === "object") {
    const entry = ([key, value]: [string, Node]) => `${pad}${key}: ${printed(value, indent + 2, key.length + 3)}`;
    return `{\n${node.entries.map(entry).join(",\n")}${close}}`;
  }
  return line;
}

/** @throws NotJson */
export function formatted(text: string, indent = 0): string {
  const node = new Reader(text).document();
  const whole = indent === 0 && node.kind === "object" && node.entries.length > 0;
  return whole ? `${expanded(node)}\n` : printed(node, indent, 0);
}

/** The document itself is always written on several lines. */
function expanded(node: Node & { kind: "object" }): string {
  const lines = node.entries.map(([key, value]) => `  ${key}: ${printed(value, 2, key.length + 3)}`);
  return `{\n${lines.join(",\n")}\n}`;
}

/** The syntax error of a text, if any. */
export function syntaxProblem(text: string): NotJson | undefined {
  try {
    new Reader(text).document();
    return undefined;
  } catch (error) {
    if (error instanceof NotJson) return error;
    throw error;
  }
}
