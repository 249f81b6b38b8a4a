export const help = {
  title: "Lake",
  text: [
    "The source files of your tables. Files of a pipeline are stored under pipelines/ and its slug; a new CSV there starts a run.",
    "Drop files or folders anywhere on the page to upload them to the open folder. Uploads continue while you use other pages.",
    "The status shows which tables read a file and whether its rows are up to date.",
    "Click a file name to preview the file. Select files with a click, Ctrl or Shift and click, or the space bar, then move, download or delete them.",
  ],
};
