/** Rows that a config would reject, with links to their lines. */
import { Link } from "wouter-preact";
import { routes } from "../../browser/routes";
import { MessageText } from "../../components/message-text";
import { count } from "../../format/number";

export interface RejectedRow {
  id: string;
  /** The file's key in the lake, if known. */
  key: string | null | undefined;
  /** Shown if the rows are of several files. */
  file?: string;
  line: number;
  column: string | null | undefined;
  value: string;
  message: string;
}

export function RejectedRows({ rows, caption }: { rows: RejectedRow[]; caption: string }) {
  if (rows.length === 0) return null;
  const hasFiles = rows.some(({ file }) => file !== undefined);
  return (
    <div class="table-box config-rejects">
      <table class="table stacks">
        <caption class="for-readers">{caption}</caption>
        <thead>
          <tr>
            {hasFiles && <th>File</th>}
            <th class="num">Line</th>
            <th>Column</th>
            <th>Value</th>
            <th>Reason</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, key, file, line, column, value, message }) => (
            <tr key={id}>
              {hasFiles && <td class="config-file">{file}</td>}
              <td class="num" data-label="Line">
                {key ? <Link href={`~${routes.file(key, line)}`}>{count(line)}</Link> : count(line)}
              </td>
              <td data-label="Column">
                <code>{column ?? "–"}</code>
              </td>
              <td class="whole" data-label="Value">
                <mark class="config-refused cut">{value}</mark>
              </td>
              <td class="whole">
                <MessageText text={message} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
