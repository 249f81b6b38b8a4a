import { ChevronLeft, ChevronRight } from "lucide-preact";
import { IconButton } from "../../components/button";
import { count } from "../../format/number";

/** Page navigation; hidden for a single page. */
export function Pager({
  page,
  size,
  total,
  what,
  onPage,
}: {
  page: number;
  size: number;
  total: number;
  /** Plural noun. */
  what: string;
  onPage: (page: number) => void;
}) {
  if (total <= size && page === 0) return null;
  const first = page * size;
  const last = Math.min(total, first + size);
  return (
    <nav class="row data-pager" aria-label={`Pages of ${what}`}>
      <IconButton label="Previous page" icon={<ChevronLeft />} disabled={page === 0} onClick={() => onPage(page - 1)} />
      <span class="num">
        {count(Math.min(first + 1, total))}–{count(last)} of {count(total)} {what}
      </span>
      <IconButton label="Next page" icon={<ChevronRight />} disabled={last >= total} onClick={() => onPage(page + 1)} />
    </nav>
  );
}
