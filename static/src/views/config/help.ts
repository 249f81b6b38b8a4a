export const help = {
  title: "Config",
  text: [
    "The config says which CSVs of the lake become which tables: a mapping a table, with its files, dialect, columns and checks.",
    "Type to have keys and values completed; point at a name to read what it does. Problems are marked where they are and listed below.",
    "The effect shows the first rows as they would come out, what the next run would make anew, and which dashboards and saved queries would break.",
    "Saving shows what changes. If somebody else saved in the meantime, both versions are merged, and conflicts are yours to choose.",
    "Unsaved text is kept in this browser. A saved config counts from the next run on.",
    "In the editor, Tab indents; to leave it by keys, press Escape, then Tab.",
  ],
};
