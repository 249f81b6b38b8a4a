export const help = {
  title: "Pipelines",
  text: [
    "A pipeline turns CSVs into tables. Each card shows the tables, the next run and the last 30 runs as bars: height is the duration, red is a failure.",
    "New pipeline starts from a CSV, a blank config, the sample or an exported archive.",
    "Use the menu of a card to run, rename, export or delete the pipeline. Deleting lists what will be deleted and asks for the slug.",
  ],
};
