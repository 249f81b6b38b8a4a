export const help = {
  title: "Dashboards",
  text: [
    "A dashboard is a YAML text: queries over the pipeline's tables, panels that show what they give, and parameters that people choose.",
    "What is chosen stands in the address, so a dashboard can be shared as it is looked at. Panels are filled anew when a run has ended.",
    "The editor saves a draft while you type and shows it beside the text. Nobody else sees it until it is published.",
    "Publishing passes a gate: YAML, schema, every column that a panel names, and the SQL of each query. What is wrong is told with its line.",
    "The menu of a panel shows its data, opens its query, and downloads it as CSV.",
  ],
};
