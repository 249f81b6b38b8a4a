export const help = {
  title: "Dashboards",
  text: [
    "A dashboard has panels that show the pipeline's tables as charts, numbers and tables, and filters that viewers can set. It is stored as YAML.",
    "In the editor, drag panels by their handle and resize them at their corner, or focus either and use the arrow keys. Edit opens a panel in the chart builder. Add filter makes a filter from a column. Every change is written to the YAML, one click away, and can be undone.",
    "The chosen filters are part of the URL, so you can share exactly what you see. Panels refresh after each run.",
    "The editor saves a draft as you type and shows a live preview. Viewers see the changes after you publish.",
    "Publishing validates the YAML, the schema, the columns of each panel and the SQL of each query. Problems are listed with their line.",
    "Use the menu of a panel to view its data, open its query, download a CSV or PNG, or show it in full screen.",
  ],
};
