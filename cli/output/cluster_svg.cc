
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>

#include "cli/output/cluster_groups.h"
#include "cli/output/table.h"
#include "sim/base/text.h"
#include "sim/base/utf8.h"

namespace rehearse::cli {
namespace {

using cluster::Cluster, cluster::VertexKind;

// Colours that people with any colour vision tell apart (Okabe and Ito, 2008).
constexpr std::array<std::string_view, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#e69f00", "#56b4e9", "#666666", "#000000"};
constexpr std::size_t kMostNodes = 8;  // more are folded into kFewNodes
constexpr std::size_t kFewNodes = 4;
constexpr std::size_t kMostInRow = 16;
constexpr double kCellWidth = 64, kCellHeight = 22, kRowStep = 52, kMargin = 24, kGap = 8,
                 kArc = 40;

std::string escaped(std::string_view text) {
  std::string result;
  for (const char ch : printable(text)) {
    switch (ch) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += ch;
    }
  }
  return result;
}

struct Place {
  double x, y;  // of the middle
};

class Drawing {
 public:
  Drawing(const Cluster& c, const std::string& title) : c_(c), title_(title) {}

  std::string draw() {
    place_fabric_rows();
    place_nodes();
    spread_fabric();
    const std::size_t drawn = draw_links();
    for (const auto& [vertex, place] : places_) draw_vertex(vertex, place);
    draw_legend(drawn);
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<title>{}</title>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}{}{}</svg>\n",
        width_ + 2 * kMargin, height_ + kMargin, escaped(title_), boxes_, lines_, cells_);
  }

 private:
  std::string_view short_name(std::uint32_t vertex) const {
    const std::string_view name = c_.vertices()[vertex].name;
    return name.substr(name.rfind('/') == name.npos ? 0 : name.rfind('/') + 1);
  }

  void text(std::string& into, double x, double y, std::string_view what,
            const char* attributes = "") {
    into += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, attributes,
                        escaped(what));
  }

  void place_fabric_rows() {
    std::map<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> rows;
    std::map<std::uint32_t, std::string> folded;
    for (const FabricGroup& group : fabric_groups(c_)) {
      std::vector<std::uint32_t>& row = rows[group.level];
      const std::size_t shown = std::min(group.vertices.size(), kMostInRow / 2);
      for (std::size_t i = 0; i < shown; ++i) row.push_back(group.vertices[i].index());
      if (shown < group.vertices.size())
        folded[group.level] += fmt::format(" … {} × {} in all", group.vertices.size(), group.stem);
    }
    height_ = kMargin;
    text(cells_, kMargin, kMargin, title_, " font-size=\"14\" font-weight=\"bold\"");
    for (const auto& [level, row] : rows) {
      height_ += kRowStep;
      if (folded.contains(level)) text(cells_, kMargin, height_ - 18, folded[level]);
      fabric_rows_.emplace_back(row, height_);
    }
    height_ += kRowStep;
  }

  /// From top to bottom: NICs, hosts, switches below these, devices, other switches.
  std::size_t row_of(std::uint32_t vertex) const {
    switch (c_.vertices()[vertex].kind) {
      case VertexKind::kNic: return 0;
      case VertexKind::kHost:
      case VertexKind::kStorage: return 1;
      case VertexKind::kDevice: return 3;
      case VertexKind::kSwitch: return on_host_.contains(vertex) ? 2 : 4;
    }
    return 4;
  }

  void place_nodes() {
    for (const cluster::Link& link : c_.links())
      for (const auto& [a, b] : {std::pair(link.a, link.b), {link.b, link.a}})
        if (c_.vertices()[b.index()].kind == VertexKind::kHost) on_host_.insert(a.index());
    std::vector<std::array<std::vector<std::uint32_t>, 5>> rows(c_.nodes().size());
    for (std::uint32_t v = 0; v < c_.vertices().size(); ++v)
      if (const auto node = c_.vertices()[v].node) rows[node->index()][row_of(v)].push_back(v);
    double x = kMargin, bottom = height_;
    for (const NodeGroup& group : alike_nodes(c_)) {
      const std::size_t shown = group.nodes.size() > kMostNodes ? kFewNodes : group.nodes.size();
      for (std::size_t i = 0; i < shown; ++i) {
        const NodeId node = group.nodes[i];
        const bool last = i + 1 == shown && shown < group.nodes.size();
        const Place end =
            place_node(node, rows[node.index()], x,
                       last ? fmt::format(" … {} identical", group.nodes.size()) : "");
        x = end.x + kMargin;
        bottom = std::max(bottom, end.y);
      }
      if (++groups_drawn_ == kMostNodes) break;
    }
    width_ = std::max(x - 2 * kMargin, 640.0);
    height_ = bottom;
  }

  /// Gives the lower right corner of its box.
  Place place_node(NodeId node, const std::array<std::vector<std::uint32_t>, 5>& rows, double x,
                   const std::string& note) {
    std::size_t widest = 2;
    for (const auto& row : rows) widest = std::max(widest, std::min(row.size(), kMostInRow));
    const double width = static_cast<double>(widest) * (kCellWidth + kGap) + kGap;
    double y = height_ + 34;
    for (const auto& row : rows) {
      if (row.empty()) continue;
      const std::size_t shown = std::min(row.size(), kMostInRow);
      const double step = width / static_cast<double>(shown);
      for (std::size_t i = 0; i < shown; ++i)
        places_[row[i]] = {x + step * (static_cast<double>(i) + 0.5), y};
      if (shown < row.size())
        text(cells_, x + kGap, y - kCellHeight / 2 - 3, fmt::format("{} in all", row.size()));
      y += kRowStep;
    }
    const double bottom = y - kRowStep + (rows.back().empty() ? kArc : kCellHeight);
    boxes_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"6\" "
        "fill=\"#f4f4f4\" stroke=\"#999999\"/>\n",
        x, height_, width, bottom - height_);
    text(boxes_, x + kGap, height_ + 14, c_.nodes()[node.index()].name + note,
         " font-weight=\"bold\"");
    return {x + width, bottom};
  }

  void spread_fabric() {
    for (const auto& [row, y] : fabric_rows_)
      for (std::size_t i = 0; i < row.size(); ++i)
        places_[row[i]] = {
            kMargin + width_ * (static_cast<double>(i) + 0.5) / static_cast<double>(row.size()), y};
  }

  /// A line; or an arc below the boxes between two ends in one row.
  static std::string way_to(Place a, Place b) {
    const double apart = std::abs(a.x - b.x);
    if (a.y != b.y || apart < 1.5 * (kCellWidth + kGap))
      return fmt::format("L{:.1f} {:.1f}", b.x, b.y);
    return fmt::format("Q{:.1f} {:.1f} {:.1f} {:.1f}", (a.x + b.x) / 2,
                       a.y + std::min(2 * kArc, kCellHeight + apart * 0.1), b.x, b.y);
  }

  std::size_t draw_links() {
    std::size_t drawn = 0;
    for (const cluster::Link& link : c_.links()) {
      const auto a = places_.find(link.a.index()), b = places_.find(link.b.index());
      if (a == places_.end() || b == places_.end()) continue;
      ++drawn;
      lines_ += fmt::format(
          "<path d=\"M{:.1f} {:.1f}{}\" fill=\"none\" stroke=\"{}\"{}/>\n", a->second.x,
          a->second.y, way_to(a->second, b->second), kColours[link.type % kColours.size()],
          link.changes.empty() ? "" : " stroke-width=\"3\" stroke-dasharray=\"6 4\"");
    }
    return drawn;
  }

  void draw_vertex(std::uint32_t vertex, Place at) {
    const bool device = c_.vertices()[vertex].kind == VertexKind::kDevice;
    cells_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"{}\" "
        "stroke=\"#333333\"/>\n",
        at.x - kCellWidth / 2, at.y - kCellHeight / 2, kCellWidth, kCellHeight, device ? 0 : 8,
        device ? "#dcefd8" : "#ffffff");
    text(cells_, at.x, at.y + 4, shortened(short_name(vertex), 10), " text-anchor=\"middle\"");
  }

  void draw_legend(std::size_t drawn) {
    const std::vector<std::size_t> counts = links_by_type(c_);
    double y = height_ + 32;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      const cluster::LinkType& type = c_.link_types()[i];
      lines_ += fmt::format(
          "<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" stroke=\"{3}\" "
          "stroke-width=\"3\"/>\n",
          kMargin, y - 4, kMargin + 28, kColours[i % kColours.size()]);
      text(cells_, kMargin + 36, y,
           fmt::format("{}: {}, {}, {} duplex, {}; {}: {}", type.name, to_string(type.rate),
                       to_string(type.latency),
                       type.duplex == cluster::Duplex::kFull ? "full" : "half",
                       counted(counts[i], "link"), to_string(type.provenance), type.source));
      y += 18;
    }
    if (drawn < c_.links().size())
      text(cells_, kMargin, y, fmt::format("{} of {} links are shown", drawn, c_.links().size()));
    height_ = y + 6;
  }

  const Cluster& c_;
  const std::string& title_;
  std::map<std::uint32_t, Place> places_;
  std::set<std::uint32_t> on_host_;
  std::vector<std::pair<std::vector<std::uint32_t>, double>> fabric_rows_;
  std::string boxes_, lines_, cells_;
  double width_ = 0, height_ = 0;
  std::size_t groups_drawn_ = 0;
};

}  // namespace

std::string cluster_svg(const Cluster& cluster, const std::string& title) {
  return Drawing(cluster, title).draw();
}

}  // namespace rehearse::cli
