"""What the subcommands print with: tables, help pages, option types, completion."""
