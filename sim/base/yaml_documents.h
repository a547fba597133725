// The documents of a YAML text: a file of this program holds one.
#pragma once

#include <optional>
#include <string>

#include <yaml-cpp/mark.h>
#include <yaml-cpp/node/node.h>

namespace rehearse {

/// The start of a second document, or of text after the first, whose root is `root`.
std::optional<YAML::Mark> second_document(const std::string& text, const YAML::Node& root);

}  // namespace rehearse
