import { QueryClientProvider } from "@tanstack/preact-query";
import { render } from "preact";
import { client } from "./api/queries";
import { App } from "./app";
import "./theme/tokens.css";
import "./theme/base.css";

const root = document.getElementById("app");
if (root) {
  render(
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>,
    root,
  );
}
