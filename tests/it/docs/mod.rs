//! The docs against the program: commands are typed, configs validated, links followed, references made anew, and the
//! tests that the security page names looked for.

mod claims;
mod commands;
mod configs;
mod links;
mod markdown;
mod reference;
