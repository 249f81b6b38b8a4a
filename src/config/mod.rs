//! The environment, read once into typed structs.
