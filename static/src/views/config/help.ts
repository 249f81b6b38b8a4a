export const help = {
  title: "Config",
  text: [
    "The config defines the tables of the pipeline. Each mapping is one table, with its files, CSV dialect, columns and checks.",
    "Keys and values are completed as you type. Hover over a name for its description. Problems are marked in the text and listed below. Edit column in the menu changes the column at the cursor in a form.",
    "Effect shows a preview of the first rows, the tables that the next run would rebuild, and the dashboards and saved queries that would break.",
    "Saving shows a diff. If someone else saved in the meantime, both versions are merged and you resolve conflicts.",
    "Unsaved changes are kept in this browser. A saved config applies from the next run.",
    "In the editor, Tab indents. To leave the editor, press Escape, then Tab.",
  ],
};
