import { Component, type ComponentChildren } from "preact";
import { connection } from "../api/connection";
import { Button } from "./button";
import { Failed } from "./states";

/** Browser messages for a chunk that failed to load: the service is down or was updated. */
const NOT_LOADED = /dynamically imported module|importing a module script|unable to preload|error loading/i;

interface Props {
  children: ComponentChildren;
}

/** Shows the error in place of a view that failed to render. */
export class Boundary extends Component<Props, { error: unknown }> {
  override state: { error: unknown } = { error: undefined };
  private forget: (() => void) | undefined;

  override componentDidCatch(error: unknown): void {
    this.setState({ error });
    if (this.missing(error)) this.forget = connection.onRecovered(() => location.reload());
  }

  override componentWillUnmount(): void {
    this.forget?.();
  }

  private missing(error: unknown): boolean {
    return error instanceof Error && NOT_LOADED.test(error.message);
  }

  override render(): ComponentChildren {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    const title = this.missing(error) ? "Couldn't load this view" : "Couldn't show this view";
    const reload = (
      <Button variant="primary" onClick={() => location.reload()}>
        Reload the page
      </Button>
    );
    return <Failed title={title} error={error} actions={reload} />;
  }
}
