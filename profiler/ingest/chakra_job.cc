#include "profiler/ingest/chakra_job.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/core.h>

#include "profiler/ingest/astra_system.h"
#include "profiler/ingest/byte_source.h"
#include "profiler/ingest/chakra_program.h"
#include "sim/base/text.h"
#include "sim/program/rank_builder.h"

namespace rehearse::ingest {
namespace {

using program::Program, program::ProgramOp, program::RankProgram, program::Task;

struct Phase {
  CollectiveKind kind;
  std::vector<bool> involved;  ///< empty: the group of the op
  double share;                ///< of the op's bytes
};

class Phases {
 public:
  Phases(const AstraCollectives& how, const std::vector<std::uint32_t>& sizes)
      : how_(how), sizes_(sizes) {}

  std::vector<Phase> of(const ProgramOp& op, const std::string& group,
                        const std::vector<bool>& involved) const {
    std::vector<std::size_t> along;
    for (std::size_t d = 0; d < sizes_.size(); ++d)
      if (involved.empty() || involved[d]) along.push_back(d);
    const bool whole = how_.one_ring || !group.empty() || along.size() < 2;
    switch (whole ? CollectiveKind::kBarrier : op.collective) {
      case CollectiveKind::kAllReduce: return all_reduce(along);
      case CollectiveKind::kReduceScatter: return chain(op.collective, along);
      case CollectiveKind::kAllGather:
        std::ranges::reverse(along);
        return chain(op.collective, along);
      case CollectiveKind::kAllToAll: return chain(op.collective, along);
      default: return {{op.collective, {}, 1}};
    }
  }

 private:
  Phase phase(CollectiveKind kind, std::size_t dimension, double share) const {
    Phase phase{kind, std::vector<bool>(sizes_.size(), false), share};
    phase.involved[dimension] = true;
    return phase;
  }

  std::vector<Phase> chain(CollectiveKind kind, const std::vector<std::size_t>& along) const {
    std::vector<Phase> phases;
    double share = 1;
    for (const std::size_t d : along) {
      phases.push_back(phase(kind, d, share));
      if (kind == CollectiveKind::kReduceScatter) share /= sizes_[d];
      if (kind == CollectiveKind::kAllGather) share *= sizes_[d];
    }
    return phases;
  }

  std::vector<Phase> all_reduce(std::vector<std::size_t> along) const {
    if (!how_.scatters_first) return chain(CollectiveKind::kAllReduce, along);
    const std::size_t last = along.back();
    along.pop_back();
    std::vector<Phase> phases = chain(CollectiveKind::kReduceScatter, along);
    double share = phases.back().share / sizes_[along.back()];
    phases.push_back(phase(CollectiveKind::kAllReduce, last, share));
    for (auto d = along.rbegin(); d != along.rend(); ++d) {
      phases.push_back(phase(CollectiveKind::kAllGather, *d, share));
      share *= sizes_[*d];
    }
    return phases;
  }

  const AstraCollectives& how_;
  const std::vector<std::uint32_t>& sizes_;
};

/// The program with every collective in `how.splits` parts. One that spans several dimensions, and
/// has no group of its own, becomes a chain of collectives along one dimension each:
///  - reduce_scatter from the first dimension on, all_gather from the last back, all_to_all from
///  the
///    first on with its whole size each time;
///  - all_reduce along each dimension; with `how.scatters_first` a reduce_scatter along each but
///  the
///    last, an all_reduce along that, and all_gathers back.
/// A dimension has one stream: its phases are served in their order of issue, those of all parts
/// before the next phase. Other kinds and groups with names stay whole. Bytes are what one rank
/// puts in, as the files have them (Sys::generate_collective of ASTRA-sim is the model).
ChakraProgram in_phases(const ChakraProgram& read, const AstraCollectives& how,
                        const std::vector<std::uint32_t>& dimensions) {
  ChakraProgram result{.program = {},
                       .groups = read.groups,
                       .involved = read.involved,
                       .peers = read.peers,
                       .ids = {},
                       .without_length = read.without_length};
  const auto group_along = [&result](const std::vector<bool>& involved) {
    std::size_t g = 0;
    while (g < result.groups.size() &&
           !(result.groups[g].empty() && result.involved[g] == involved))
      ++g;
    if (g == result.groups.size()) {
      result.groups.emplace_back();
      result.involved.push_back(involved);
    }
    return static_cast<std::uint32_t>(g);
  };
  const Phases phases(how, dimensions);
  std::vector<std::vector<std::uint32_t>>
      ends;  // by op as read: what must end for it to have ended
  const auto add = [&](const ProgramOp& op, std::uint64_t id,
                       const std::vector<program::OpIndex>& after) {
    result.ids.push_back(id);
    return program::append(result.program, op, after);
  };
  for (std::size_t i = 0; i < read.program.ops.size(); ++i) {
    ProgramOp op = read.program.ops[i];
    op.stream = program::kStreamOfTask;  // ASTRA-sim computes one op at a time
    std::vector<std::uint32_t> before;
    for (std::uint32_t d = read.program.first_dependency[i];
         d < read.program.first_dependency[i + 1]; ++d) {
      const std::vector<std::uint32_t>& of = ends[read.program.dependencies[d]];
      before.insert(before.end(), of.begin(), of.end());
    }
    std::vector<std::uint32_t>& end = ends.emplace_back();
    if (op.task != Task::kCollective || op.collective == CollectiveKind::kBarrier) {
      end.push_back(add(op, read.ids[i], before));
      continue;
    }
    end.resize(how.splits);
    bool first = true;
    for (const Phase& phase : phases.of(op, read.groups[op.group], read.involved[op.group])) {
      ProgramOp part = op;
      part.collective = phase.kind;
      part.bytes = op.bytes * (phase.share / how.splits);
      if (!phase.involved.empty()) part.group = group_along(phase.involved);
      for (std::uint32_t& last : end)
        last = add(part, read.ids[i], first ? before : std::vector{last});
      first = false;
    }
  }
  return result;
}

std::size_t hash_of(const RankProgram& program) {
  std::size_t hash = program.ops.size();
  const auto mix = [&](std::size_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  };
  for (const ProgramOp& op : program.ops) {
    mix(op.name.index());
    mix(static_cast<std::size_t>(op.duration.value_or(Picoseconds(0)).count()));
    mix(std::hash<double>()(op.bytes.b()));
    mix(op.peer);
  }
  return hash;
}

/// Dimensions say which rank is where only if each place has one.
Status check_places(const std::vector<std::uint32_t>& dimensions, std::uint32_t ranks) {
  double places = 1;
  for (const std::uint32_t size : dimensions) places *= size;
  if (places == ranks) return {};
  return fail(fmt::format("{} ranks on a network of {:.0f} NPUs", ranks, places),
              "one rank per NPU");
}

/// Gives the programs of files to ranks, whose groups say who takes part.
class JobBuilder {
 public:
  JobBuilder(Program& job, const CommGroups& groups, const std::vector<std::uint32_t>& dimensions,
             std::uint32_t ranks)
      : job_(job), groups_(groups), dimensions_(dimensions), ranks_(ranks) {}

  /// REQUIRES: ranks in their order; `number` is that of the file.
  Status add(const ChakraProgram& read, std::size_t number, const std::string& file, RankId rank) {
    std::vector<std::uint32_t> groups, sizes;
    for (std::size_t g = 0; g < read.groups.size(); ++g) {
      const std::uint32_t group =
          TRY(read.involved[g].empty() ? group_of(read.groups[g], file, rank)
                                       : along(read.involved[g], file, rank));
      groups.push_back(group);
      sizes.push_back(static_cast<std::uint32_t>(job_.groups[group].members.size()));
    }
    job_.groups_of.push_back(std::move(groups));
    std::vector<RankId>& peers = job_.peers_of.emplace_back();
    for (const std::uint32_t peer : read.peers) peers.push_back(RankId(peer));
    job_.program_of.push_back(program(read, {number, std::move(sizes)}));
    return {};
  }

 private:
  using FileAndSizes = std::pair<std::size_t, std::vector<std::uint32_t>>;

  /// The program with the bytes of each all_gather counted over its group; each once.
  std::uint32_t program(const ChakraProgram& read, const FileAndSizes& key) {
    if (last_ && last_key_ == key) return *last_;
    RankProgram program = read.program;
    for (ProgramOp& op : program.ops)
      if (op.task == Task::kCollective && op.collective == CollectiveKind::kAllGather)
        op.bytes = op.bytes * key.second[op.group];
    std::vector<std::uint32_t>& alike = programs_of_hash_[hash_of(program)];
    last_key_ = key;
    last_.reset();
    for (const std::uint32_t known : alike)
      if (job_.programs[known] == program) last_ = known;
    if (!last_) {
      last_ = static_cast<std::uint32_t>(job_.programs.size());
      alike.push_back(*last_);
      job_.programs.push_back(std::move(program));
    }
    return *last_;
  }

  Result<std::uint32_t> group_of(const std::string& name, const std::string& file, RankId rank) {
    const auto found = groups_.find(name);
    if (found == groups_.end()) {
      if (name.empty() || name == "0") return everyone();
      std::vector<std::string_view> names;
      for (const auto& [known, sets] : groups_) names.push_back(known);
      return fail(Diagnostic{.file = file,
                             .problem = fmt::format("process group '{}' is unknown", name),
                             .expected = names.empty() ? "--comm-groups FILE with its ranks" : "",
                             .nearest = names.empty() ? "" : suggest(name, names)});
    }
    const auto& set_of = sets_of(name, found->second);
    if (const auto set = set_of.find(rank.index()); set != set_of.end())
      return group(name, found->second, set->second);
    return fail(
        Diagnostic{.file = file,
                   .problem = fmt::format("rank {} uses process group '{}' but is not a member",
                                          rank.index(), name)});
  }

  /// By rank, which of the sets under a name it is in.
  const std::unordered_map<std::uint32_t, std::size_t>& sets_of(
      const std::string& name, const std::vector<std::vector<std::uint32_t>>& sets) {
    auto& set_of = set_of_[name];
    if (set_of.empty())
      for (std::size_t i = 0; i < sets.size(); ++i)
        for (const std::uint32_t member : sets[i]) set_of.emplace(member, i);
    return set_of;
  }

  Result<std::uint32_t> group(const std::string& name,
                              const std::vector<std::vector<std::uint32_t>>& sets, std::size_t i) {
    const auto known = index_.find({name, i});
    if (known != index_.end()) return known->second;
    const std::uint32_t largest = *std::ranges::max_element(sets[i]);
    if (largest >= ranks_)
      return fail(fmt::format("process group '{}' has rank {} of {} ranks", name, largest, ranks_));
    Program::Group group{.name = name, .members = {}};
    if (sets.size() > 1) group.name += fmt::format("[{}]", i);
    for (const std::uint32_t member : sets[i]) group.members.push_back(RankId(member));
    return add(std::move(group), {name, i});
  }

  Result<std::uint32_t> everyone() {
    const auto known = index_.find({"", 0});
    if (known != index_.end()) return known->second;
    Program::Group group{.name = "all", .members = {}};
    for (std::uint32_t r = 0; r < ranks_; ++r) group.members.push_back(RankId(r));
    return add(std::move(group), {"", 0});
  }

  /// The ranks that differ from this one along the dimensions alone that are involved.
  Result<std::uint32_t> along(const std::vector<bool>& involved, const std::string& file,
                              RankId rank) {
    if (involved.size() < dimensions_.size() || dimensions_.empty())
      return fail(
          Diagnostic{.file = file,
                     .problem = fmt::format("involved_dim names {} dimensions of a network of {}",
                                            involved.size(), dimensions_.size()),
                     .expected = "a cluster with these dimensions, or pg_name and --comm-groups, "
                                 "which list the participating ranks"});
    TRY(check_places(dimensions_, ranks_));
    Program::Group group{.name = "along", .members = {rank}};
    std::uint32_t stride = 1;
    for (std::size_t d = 0; d < dimensions_.size(); stride *= dimensions_[d++]) {
      if (!involved[d]) continue;
      group.name += fmt::format(" {}", d);
      // From this rank's place along the dimension to its first, and from there all of them.
      const std::uint32_t place = rank.index() / stride % dimensions_[d];
      std::vector<RankId> wider;
      for (std::uint32_t i = 0; i < dimensions_[d]; ++i)
        for (const RankId member : group.members)
          wider.push_back(RankId(member.index() + i * stride - place * stride));
      group.members = std::move(wider);
    }
    const std::uint32_t first = group.members.front().index();
    const std::string key = group.name;
    if (const auto known = index_.find({key, first}); known != index_.end()) return known->second;
    group.name += fmt::format(" from rank {}", first);
    return add(std::move(group), {key, first});
  }

  std::uint32_t add(Program::Group group, std::pair<std::string, std::size_t> key) {
    job_.groups.push_back(std::move(group));
    const auto index = static_cast<std::uint32_t>(job_.groups.size() - 1);
    index_.emplace(std::move(key), index);
    return index;
  }

  Program& job_;
  const CommGroups& groups_;
  const std::vector<std::uint32_t>& dimensions_;
  std::uint32_t ranks_;
  std::map<std::pair<std::string, std::size_t>, std::uint32_t> index_;
  std::map<std::string, std::unordered_map<std::uint32_t, std::size_t>> set_of_;
  std::unordered_map<std::size_t, std::vector<std::uint32_t>> programs_of_hash_;
  FileAndSizes last_key_;
  std::optional<std::uint32_t> last_;
};

/// The file of that name, or of that name with .gz appended.
std::optional<std::filesystem::path> existing(std::filesystem::path path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return path;
  path += ".gz";
  if (std::filesystem::is_regular_file(path, ignored)) return path;
  return std::nullopt;
}

std::filesystem::path with(const std::filesystem::path& prefix, const std::string& end) {
  std::filesystem::path path = prefix;
  path += end;
  return path;
}

struct Found {
  std::vector<std::filesystem::path> files;  // one for all ranks, or one per rank
  std::uint32_t ranks;
};

Result<Found> find_files(const ChakraFiles& files) {
  const std::string prefix = files.prefix.string();
  std::optional<std::filesystem::path> shared = existing(with(files.prefix, ".et"));
  if (!shared) shared = existing(files.prefix);
  const auto first = existing(with(files.prefix, ".0.et"));
  if (!first && shared) {
    if (!files.ranks)
      return fail(Diagnostic{.file = shared->string(),
                             .problem = "is one file for all ranks",
                             .expected = "--ranks N, the number of ranks"});
    return Found{{*shared}, *files.ranks};
  }
  Found found{{}, files.ranks.value_or(0)};
  for (std::uint32_t r = 0; !files.ranks || r < *files.ranks; ++r) {
    auto file = existing(with(files.prefix, fmt::format(".{}.et", r)));
    if (!file && !files.ranks && r > 0) break;
    if (!file)
      return fail(Diagnostic{
          .file = fmt::format("{}.{}.et", prefix, r),
          .problem = "no such file",
          .expected = r > 0 ? fmt::format("a file for each of {} ranks", *files.ranks)
                            : fmt::format("{0}.0.et and so on, or {0}.et for all ranks", prefix)});
    found.files.push_back(std::move(*file));
  }
  found.ranks = static_cast<std::uint32_t>(found.files.size());
  return found;
}

}  // namespace

Result<ChakraJob> read_chakra_job(const ChakraFiles& files, const Progress& progress) {
  const Found found = TRY(find_files(files));
  if (files.astra) TRY(check_places(files.dimensions, found.ranks));
  ChakraJob result;
  JobBuilder builder(result.job, files.groups, files.dimensions, found.ranks);
  const bool shared = found.files.size() == 1;
  for (std::size_t f = 0; f < found.files.size(); ++f) {
    const std::string name = found.files[f].string();
    const std::unique_ptr<ByteSource> source = TRY(open_bytes(found.files[f]));
    const auto share = [&](double of_file) {
      return progress((static_cast<double>(f) + of_file) / static_cast<double>(found.files.size()));
    };
    ChakraProgram program = TRY(read_chakra_program(*source, name, files.timed, result.job.names,
                                                    progress ? Progress(share) : Progress{}));
    if (files.astra) program = in_phases(program, *files.astra, files.dimensions);
    result.files.push_back(name);
    result.without_length += program.without_length;
    const std::uint32_t first = shared ? 0 : static_cast<std::uint32_t>(f);
    for (std::uint32_t r = first; r < (shared ? found.ranks : first + 1); ++r)
      TRY(builder.add(program, f, name, RankId(r)));
  }
  return result;
}

}  // namespace rehearse::ingest
