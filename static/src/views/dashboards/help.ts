export const help = {
  title: "Dashboards",
  text: [
    "A dashboard is a YAML document with queries on the pipeline's tables, panels that show the results, and parameters that viewers can set.",
    "Parameter values are part of the URL, so you can share exactly what you see. Panels refresh after each run.",
    "The editor saves a draft as you type and shows a live preview. Viewers see the changes after you publish.",
    "Publishing validates the YAML, the schema, the columns of each panel and the SQL of each query. Problems are listed with their line.",
    "Use the menu of a panel to view its data, open its query or download a CSV.",
  ],
};
