import { EditorView } from "@codemirror/view";

/**
 * Handles typing over a selection in the editor: browsers would keep the old style in a `style` attribute, which
 * violates the content policy.
 */
export const overwrite = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { main, ranges } = view.state.selection;
    if (event.inputType !== "insertText" || event.data === null || event.isComposing) return false;
    if (main.empty || ranges.length > 1 || view.state.readOnly) return false;
    const text = event.data;
    const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type" });
    const handlers = view.state.facet(EditorView.inputHandler);
    // Bracket wrapping is such a handler.
    if (!handlers.some((handle) => handle(view, main.from, main.to, text, insert))) view.dispatch(insert());
    event.preventDefault();
    return true;
  },
});
