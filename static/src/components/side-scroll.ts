import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";
import "./side-scroll.css";

/** As far as handles and borders reach over an edge. */
const SLACK_PX = 8;

/** Marks on `box` on which sides the scroller has more, so that wide tables don't look cut. */
export function useSideScroll(box: RefObject<HTMLElement>, scroller: RefObject<HTMLElement>): void {
  useEffect(() => {
    const [marked, node] = [box.current, scroller.current];
    if (!marked || !node) return undefined;
    const look = () => {
      const right = node.scrollWidth - node.clientWidth - node.scrollLeft;
      const more = [node.scrollLeft > SLACK_PX ? "left" : "", right > SLACK_PX ? "right" : ""].join(" ").trim();
      if (marked.dataset.more !== more) marked.dataset.more = more;
    };
    const observer = new ResizeObserver(look);
    for (const one of [node, ...node.children]) observer.observe(one);
    node.addEventListener("scroll", look, { passive: true });
    look();
    return () => {
      observer.disconnect();
      node.removeEventListener("scroll", look);
    };
  }, [box, scroller]);
}
