import { Component, type ComponentChildren } from "preact";
import { connection } from "../api/connection";
import { isNotLoaded } from "../api/failure";
import { Failed } from "./states";

interface Props {
  children: ComponentChildren;
}

/** Shows the error in place of a view that failed to render. */
export class Boundary extends Component<Props, { error: unknown }> {
  override state: { error: unknown } = { error: undefined };
  private forget: (() => void) | undefined;

  override componentDidCatch(error: unknown): void {
    this.setState({ error });
    if (isNotLoaded(error)) this.forget = connection.onRecovered(() => location.reload());
  }

  override componentWillUnmount(): void {
    this.forget?.();
  }

  override render(): ComponentChildren {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    const title = isNotLoaded(error) ? "Couldn't load this view" : "Couldn't show this view";
    return <Failed title={title} error={error} reload />;
  }
}
