import { EditorView } from "@codemirror/view";

/**
 * Typing over a selection, done by the editor itself: a browser that does it keeps the look of what was there in a
 * `style` attribute, which the content policy refuses, and says so in its console.
 */
export const overwrite = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { main, ranges } = view.state.selection;
    if (event.inputType !== "insertText" || event.data === null || event.isComposing) return false;
    if (main.empty || ranges.length > 1 || view.state.readOnly) return false;
    const text = event.data;
    const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type" });
    const handlers = view.state.facet(EditorView.inputHandler);
    // Brackets put around a selection are such a handler.
    if (!handlers.some((handle) => handle(view, main.from, main.to, text, insert))) view.dispatch(insert());
    event.preventDefault();
    return true;
  },
});
