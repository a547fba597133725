// The documents of a YAML text: a file of this program holds one.
#pragma once

#include <optional>
#include <string>

namespace YAML {
struct Mark;
class Node;
}  // namespace YAML

namespace rehearse {

/// The start of a second document, or of text after the first, whose root is `root`.
std::optional<YAML::Mark> second_document(const std::string& text, const YAML::Node& root);

}  // namespace rehearse
