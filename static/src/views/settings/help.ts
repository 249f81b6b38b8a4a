export const help = {
  title: "Settings",
  text: [
    "The workspace name is shown to everyone in the sidebar and in page titles.",
    "Starred pipelines come first in the sidebar and in the list of pipelines. Change their order here.",
    "Notifications go to the targets that workers have in SVC_NOTIFY_URL. The list shows what was sent, what is pending and what failed.",
    "If someone else changes the settings at the same time, both changes are kept. You resolve changes to the same setting.",
    "About shows the versions and limits of this service and the status of its store and queue.",
  ],
};
