//! The docs against the program: commands are typed (or tried by the check of the package), configs validated, links
//! followed, references made anew, and the tests that the security page names looked for.

mod changelog;
mod claims;
mod commands;
mod configs;
mod links;
mod markdown;
mod reference;
mod tried;
mod ui_rules;
