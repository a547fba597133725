// Arguments for posix_spawn.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <unistd.h>

namespace rehearse::test {

/// The variables of this process as NAME=VALUE, with these added or replaced.
inline std::vector<std::string> environment_with(std::map<std::string, std::string> variables) {
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    variables.try_emplace(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  }
  std::vector<std::string> texts;
  for (const auto& [name, value] : variables)
    texts.push_back(std::string(name).append("=").append(value));
  return texts;
}

/// Pointers to the texts, which must outlive them, and a null pointer.
inline std::vector<char*> null_ended(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace rehearse::test
