#include "sim/base/yaml_documents.h"

#include <sstream>
#include <string_view>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace rehearse {
namespace {

/// Counts the documents that the parser begins.
class DocumentStarts : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { last_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
  const YAML::Mark& last() const { return last_; }

 private:
  YAML::Mark last_;
};

/// Whether text may follow the first document. Without marks of documents and directives, a block
/// mapping that begins in column 0 goes on to the end of the text, or the parser has thrown.
bool may_end_early(const std::string& text, const YAML::Node& root) {
  static constexpr std::string_view kMarks[] = {"---", "...", "\n%", {"\0", 1} /* in UTF-16 */};
  for (const std::string_view mark : kMarks)
    if (text.find(mark) != text.npos) return true;
  if (!root.IsMap() || root.size() == 0 || root.Style() != YAML::EmitterStyle::Block) return true;
  const YAML::Node first = root.begin()->first;
  return !first.IsScalar() || first.Mark().column != 0;
}

}  // namespace

// YAML::LoadAll does not end if the parser stops at text that belongs to no document, so the parser
// is asked for only two documents. It takes as long to find them as to read the first, so it is asked
// only where there may be a second.
std::optional<YAML::Mark> second_document(const std::string& text, const YAML::Node& root) {
  if (!may_end_early(text, root)) return std::nullopt;
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  if (!parser.HandleNextDocument(starts) || !parser.HandleNextDocument(starts)) return std::nullopt;
  return starts.last();
}

}  // namespace rehearse
