// `-` as the name of a file: standard input.
#pragma once

namespace CLI {
class App;
}

namespace rehearse::cli {

/// Lets `-` stand for standard input wherever a command reads a file. It is copied to a file without
/// a name, because readers of recordings look into them more than once; their messages name
/// /dev/stdin. Other files are kept as text, and names in them are relative to the current folder.
void accept_standard_input(CLI::App& command);

}  // namespace rehearse::cli
