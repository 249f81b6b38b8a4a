fn main() {}
mod sql_escapes;
mod sql_evaluate;
mod sql_support;
mod sql_types;
