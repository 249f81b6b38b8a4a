export const help = {
  title: "Settings",
  text: [
    "The workspace's name stands in the sidebar and in the titles of the browser's tabs, for everybody. Your own name is kept beside it.",
    "Starred pipelines come first in the sidebar and in the list of pipelines, in the order that they have here.",
    "If somebody else changes the settings while you do, both changes are kept where they are of different things; where they are of the same, you are asked.",
    "About tells what this service runs on, and whether its store and its queue answer right now.",
  ],
};
