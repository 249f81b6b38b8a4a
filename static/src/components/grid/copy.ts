import { toast } from "../toasts";

/** Copies text, also without https, and reports the result. */
export async function copyText(text: string, what: string): Promise<void> {
  if (await copied(text)) toast.done(`Copied ${what}`);
  else toast.failed(`Couldn't copy ${what}`, new Error("the browser blocked access to the clipboard"));
}

async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedByCommand(text);
  }
}

/** Fallback for pages without `navigator.clipboard`. */
function copiedByCommand(text: string): boolean {
  const put = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  document.addEventListener("copy", put, { capture: true, once: true });
  const done = document.execCommand("copy");
  document.removeEventListener("copy", put, { capture: true });
  return done;
}
