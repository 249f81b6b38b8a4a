export const help = {
  title: "From a CSV",
  text: [
    "Makes a pipeline from one file, or from several of the same shape. Nothing is created until you confirm.",
    "Detected format shows how the file is written and why. Change any setting, and the preview follows.",
    "Columns can be renamed, typed differently or left out. The preview shows the first rows as the table will have them; rejected cells are marked with the reason.",
    "Create pipeline creates it, uploads the files and shows the table once the first run has completed. You can leave the page meanwhile.",
  ],
};
