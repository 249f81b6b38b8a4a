export const help = {
  title: "Pipelines",
  text: [
    "A pipeline makes tables from CSVs. Each card shows its tables, its last 30 runs as bars (as high as they took, red where one failed), and when it runs next.",
    "New pipeline: from a CSV that you drop, from the sample, empty, or from the archive of an export.",
    "The menu of a card runs, renames, exports or deletes it. Deleting asks for the slug and says what is lost.",
  ],
};
