export const help = {
  title: "New pipeline from CSV",
  text: [
    "Creates a pipeline from one or more files with the same columns. Nothing is created until you confirm.",
    "Detected format shows the CSV settings and why they were chosen. Change a setting to update the preview.",
    "Rename columns, change their types or exclude them. The preview shows the first rows of the table; rejected values are marked with the reason.",
    "Create pipeline uploads the files, runs the pipeline and shows the table when the first run has completed. You can leave the page meanwhile.",
  ],
};
