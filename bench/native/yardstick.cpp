// What an incremental delta join costs in plain C++, over integer ids: a yardstick for other implementations.
//
//     yardstick QUERY INITIAL UPDATES
//
// QUERY holds a pattern a line, `v0 p1 v1`: variables are v0, v1, … without a gap, predicates p<id>, constants c<id>.
// INITIAL and UPDATES hold int32 quadruples (op, s, p, o), little-endian, op 1 for an insertion and -1 for a deletion; node ids
// are dense. The graph is a set: an update that changes nothing is counted, and has no deltas. One JSON object is printed.
//
// There is no index but neighbour lists, by predicate, direction and node, and only for those predicates and directions
// that the query can ask for. An update matches some patterns of the query, its triggers. For each of them the two ends are bound, and
// the rest of the query is bound a variable at a time: always the one with the shortest list of candidates, which have to be in
// the lists of all other bound neighbours too. A node is given up as soon as one of its patterns towards an unbound variable has no
// match. Variables in a single pattern come last, as a product of lists.
//
// Each delta is found once: with trigger i, patterns before i may map to the update's triple, patterns after i may not.
// The triple is in the graph during the search, for deletions as for insertions.

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

#ifndef SCAN_LIMIT
#define SCAN_LIMIT 64  // lists up to this length are scanned, longer ones have a hash table; tests make it small
#endif

constexpr int kInline = 3;
constexpr int kNone = -1;
constexpr int kMaxVariables = 8;
constexpr int kMaxNodes = 16;  // variables and constants of a query

// A set of neighbours, without order: up to kInline of them in place, more in a block, and beyond SCAN_LIMIT a table
// from value to position behind them. 16 bytes, so that a small list costs one cache line.
class List {
 public:
  int size() const { return size_; }
  const int* begin() const { return size_ <= kInline ? inline_ : block(); }

  int find(int value) const {
    if (size_ > kInline && capacity() > SCAN_LIMIT) return table_find(value);
    const int* values = begin();
    for (int i = 0; i < size_; ++i)
      if (values[i] == value) return i;
    return kNone;
  }

  void append(int value) {
    if (size_ < kInline) {
      inline_[size_++] = value;
      return;
    }
    if (size_ == kInline) {
      int* fresh = allocate(2 * (kInline + 1));
      std::copy_n(inline_, kInline, fresh);
      set_block(fresh, 2 * (kInline + 1));
      if (capacity() > SCAN_LIMIT) rebuild_table();
    } else if (size_ == capacity()) {
      int* old = block();
      int* fresh = allocate(2 * size_);
      std::copy_n(old, size_, fresh);
      std::free(old);
      set_block(fresh, 2 * size_);
      if (capacity() > SCAN_LIMIT) rebuild_table();
    }
    block()[size_] = value;
    if (capacity() > SCAN_LIMIT) table_insert(value, size_);
    ++size_;
  }

  void remove_at(int position) {
    const int last = size_ - 1;
    if (size_ <= kInline) {
      inline_[position] = inline_[last];
      size_ = last;
      return;
    }
    int* values = block();
    if (capacity() > SCAN_LIMIT) {
      table_erase(values[position]);
      if (position != last) table()[table_slot(values[last])].position = position;
    }
    values[position] = values[last];
    size_ = last;
    if (size_ == kInline) {
      std::copy_n(values, kInline, inline_);
      std::free(values);
    }
  }

 private:
  struct Entry {
    int value, position;
  };

  int size_;
  int inline_[kInline];  // or, when there are more, the capacity (a power of two) and the block's address

  int capacity() const { return inline_[0]; }
  int* block() const {
    int* address;
    std::memcpy(&address, &inline_[1], sizeof address);
    return address;
  }
  void set_block(int* address, int capacity) {
    inline_[0] = capacity;
    std::memcpy(&inline_[1], &address, sizeof address);
  }
  static int* allocate(int capacity) {
    const std::size_t table = capacity > SCAN_LIMIT ? 2 * capacity * sizeof(Entry) : 0;
    return static_cast<int*>(std::malloc(capacity * sizeof(int) + table));
  }

  // Linear probing in 2 * capacity() entries.
  Entry* table() const { return reinterpret_cast<Entry*>(block() + capacity()); }
  unsigned mask() const { return 2u * capacity() - 1; }
  unsigned home(int value) const {
    return static_cast<std::uint32_t>(value * 0x9E3779B97F4A7C15ull >> 32) & mask();
  }
  unsigned table_slot(int value) const {
    const Entry* entries = table();
    unsigned slot = home(value);
    while (entries[slot].value != value && entries[slot].value != kNone) slot = (slot + 1) & mask();
    return slot;
  }
  int table_find(int value) const {
    const Entry& entry = table()[table_slot(value)];
    return entry.value == value ? entry.position : kNone;
  }
  void table_insert(int value, int position) { table()[table_slot(value)] = {value, position}; }
  void table_erase(int value) {  // moves later entries back, so that there are no tombstones
    Entry* entries = table();
    unsigned hole = table_slot(value);
    for (unsigned at = (hole + 1) & mask(); entries[at].value != kNone; at = (at + 1) & mask())
      if (((at - home(entries[at].value)) & mask()) >= ((at - hole) & mask())) {
        entries[hole] = entries[at];
        hole = at;
      }
    entries[hole].value = kNone;
  }
  void rebuild_table() {
    std::fill_n(table(), mask() + 1, Entry{kNone, 0});
    for (int i = 0; i < size_; ++i) table_insert(block()[i], i);
  }
};
static_assert(sizeof(List) == 16, "four lists to a cache line");

struct Update {
  int op, s, p, o;
};

struct Pattern {
  int subject, predicate, object;  // the ends are nodes of the query: variables first, then constants
};

struct Query {
  std::vector<Pattern> patterns;
  int variables = 0;
  std::vector<int> constants;  // node variables + i is constants[i]
  int nodes() const { return variables + static_cast<int>(constants.size()); }
};

// What a bound node does for a neighbour in the query: it gives it a list of candidates.
struct Step {
  List* lists;        // by node id
  int other;          // the neighbour
  bool is_after;      // the pattern is after the trigger, and may not map to the update's triple …
  bool from_subject;  // … whose subject (or object) is this node, and so the other end is excluded
};

// A pattern between two nodes that are bound from the start.
struct Check {
  List* lists;
  int from, to;
  bool is_after, from_subject;
};

struct Trigger {
  Pattern pattern;
  unsigned inner = 0;  // unbound variables in several patterns
  std::vector<int> leaves;
  std::vector<Check> checks;
  std::vector<int> bound;  // the nodes that give candidates at the start
  std::vector<Step> steps[kMaxNodes];
};

// The lists of one direction of one predicate.
struct Direction {
  List* lists = nullptr;
};

struct Predicate {
  Direction out, in;
  std::vector<Trigger> triggers;
};

struct Candidates {
  const List* list;
  int size;      // without the excluded one
  int excluded;  // or kNone
};

// Delta rows are written here. What happens to them is not timed.
class Output {
 public:
  explicit Output(int width) : width_(width) { grow(1 << 16); }
  int* reserve(std::size_t rows) {
    const std::size_t needed = used_ + rows * width_;
    if (needed > values_.size()) grow(needed);
    return values_.data() + used_;
  }
  void advance(std::size_t rows) { used_ += rows * width_; }
  void end_message(int seq, int op) {
    if (used_ != (messages_.empty() ? 0 : messages_.back().end)) messages_.push_back({seq, op, used_});
  }
  bool is_full() const { return used_ >= kFull; }
  void consume();
  void print() const {
    std::printf("\"deltas_plus\": %llu, \"deltas_minus\": %llu, ", plus_, minus_);
    std::printf("\"checksum\": \"%016llx\", \"checksum_seq\": \"%016llx\", ", sum_, sum_seq_);
  }
  unsigned long long deltas() const { return plus_ + minus_; }

 private:
  static constexpr std::size_t kFull = 1 << 15;
  struct Message {
    int seq, op;
    std::size_t end;
  };
  void grow(std::size_t needed) { values_.resize(std::max(needed, 2 * values_.size())); }

  std::size_t width_, used_ = 0;
  std::vector<int> values_;
  std::vector<Message> messages_;
  unsigned long long plus_ = 0, minus_ = 0, sum_ = 0, sum_seq_ = 0;
};

unsigned long long mix(unsigned long long z) {  // the finaliser of splitmix64
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

void Output::consume() {
  std::size_t at = 0;
  for (const Message& message : messages_)
    for (; at < message.end; at += width_) {
      unsigned long long hash = mix(message.op > 0 ? 1 : 2);
      for (std::size_t column = 0; column < width_; ++column) hash = mix(hash ^ values_[at + column]);
      sum_ += hash;
      sum_seq_ += mix(hash ^ message.seq);
      ++(message.op > 0 ? plus_ : minus_);
    }
  messages_.clear();
  used_ = 0;
}

// Binds the rest of the query around a trigger. The number of variables is fixed so that a row is copied by a few moves.
template <int kVariables>
class Search {
 public:
  Search(const Query& query, Output& output) : output_(output) {
    std::copy(query.constants.begin(), query.constants.end(), values_ + query.variables);
  }

  void run(const Trigger& trigger, const Update& update) {
    trigger_ = &trigger;
    update_ = &update;
    values_[trigger.pattern.subject] = update.s;
    values_[trigger.pattern.object] = update.o;
    for (const Check& check : trigger.checks) {
      const int from = values_[check.from], to = values_[check.to];
      if (to == excluded(check.is_after, check.from_subject, from)) return;
      if (check.lists[from].find(to) == kNone) return;
    }
    unbound_ = trigger.inner;
    for (int leaf : trigger.leaves) unbound_ |= 1u << leaf;
    std::fill_n(count_, kVariables, 0);
    for (int node : trigger.bound)
      if (!offer(node)) return;
    extend(trigger.inner);
  }

 private:
  // The value that a list may not give because that would be the update's triple.
  int excluded(bool is_after, bool from_subject, int value) const {
    if (!is_after) return kNone;
    if (from_subject) return value == update_->s ? update_->o : kNone;
    return value == update_->o ? update_->s : kNone;
  }

  // Gives candidates to the unbound neighbours of a node. False when one is left without any; then nothing was given,
  // unless the node is one of the start.
  bool offer(int node) {
    const int value = values_[node];
    const std::vector<Step>& steps = trigger_->steps[node];
    for (const Step* step = steps.data(); step != steps.data() + steps.size(); ++step) {
      if (!(unbound_ >> step->other & 1)) continue;
      const List* list = &step->lists[value];
      const int without = excluded(step->is_after, step->from_subject, value);
      const int size = list->size() - (without != kNone);
      if (size == 0) {
        while (step-- != steps.data()) count_[step->other] -= unbound_ >> step->other & 1;
        return false;
      }
      candidates_[step->other][count_[step->other]++] = {list, size, without};
    }
    return true;
  }

  void withdraw(int node) {
    for (const Step& step : trigger_->steps[node]) count_[step.other] -= unbound_ >> step.other & 1;
  }

  void extend(unsigned inner) {
    if (inner == 0) {
      emit(trigger_->leaves.data(), static_cast<int>(trigger_->leaves.size()));
      return;
    }
    int variable = kNone, shortest = 0, fewest = INT32_MAX;
    for (unsigned rest = inner; rest != 0; rest &= rest - 1) {
      const int node = __builtin_ctz(rest);
      for (int i = 0; i < count_[node]; ++i)
        if (candidates_[node][i].size < fewest) {
          fewest = candidates_[node][i].size;
          variable = node;
          shortest = i;
        }
    }
    const Candidates* all = candidates_[variable];
    const int count = count_[variable];
    const Candidates from = all[shortest];
    const unsigned bit = 1u << variable;
    unbound_ ^= bit;
    const int* values = from.list->begin();
    for (int i = 0, size = from.list->size(); i < size; ++i) {
      const int value = values[i];
      if (value == from.excluded || !in_others(value, all, count, shortest)) continue;
      values_[variable] = value;
      if (!offer(variable)) continue;
      extend(inner ^ bit);
      withdraw(variable);
    }
    unbound_ ^= bit;
  }

  static bool in_others(int value, const Candidates* all, int count, int except) {
    for (int i = 0; i < count; ++i)
      if (i != except && (value == all[i].excluded || all[i].list->find(value) == kNone)) return false;
    return true;
  }

  // The product of the leaves' candidates.
  void emit(const int* leaves, int count) {
    if (count == 0) {
      std::memcpy(output_.reserve(1), values_, kVariables * sizeof(int));
      output_.advance(1);
      return;
    }
    const int leaf = leaves[0];
    const Candidates& from = candidates_[leaf][0];
    const int* values = from.list->begin();
    const int size = from.list->size();
    if (count > 1) {
      for (int i = 0; i < size; ++i) {
        if (values[i] == from.excluded) continue;
        values_[leaf] = values[i];
        emit(leaves + 1, count - 1);
      }
      return;
    }
    int* row = output_.reserve(size);
    for (int i = 0; i < size; ++i) {
      if (values[i] == from.excluded) continue;
      std::memcpy(row, values_, kVariables * sizeof(int));
      row[leaf] = values[i];
      row += kVariables;
    }
    output_.advance(from.size);
  }

  Output& output_;
  const Trigger* trigger_ = nullptr;
  const Update* update_ = nullptr;
  unsigned unbound_ = 0;
  int values_[kMaxNodes];
  int count_[kMaxNodes];
  Candidates candidates_[kVariables][kMaxNodes];
};

// The query, its triggers, and the graph as far as they need it.
class Program {
 public:
  Program(const Query& query, int nodes) : query_(query), nodes_(nodes) {
    for (const Pattern& pattern : query.patterns)
      if (pattern.predicate >= static_cast<int>(predicates_.size())) predicates_.resize(pattern.predicate + 1);
    for (std::size_t i = 0; i < query.patterns.size(); ++i) add_trigger(i);
    for (const Pattern& pattern : query.patterns) {  // the graph is a set: one direction must be there to tell
      Predicate& predicate = predicates_[pattern.predicate];
      if (!predicate.out.lists && !predicate.in.lists) need(predicate.out);
    }
  }

  bool is_relevant(const Update& update) const {
    if (update.p >= static_cast<int>(predicates_.size())) return false;
    for (const Trigger& trigger : predicates_[update.p].triggers)
      if (unifies(trigger, update)) return true;
    return false;
  }

  // Adds a relevant triple. Returns whether it is new.
  bool insert(const Update& update) {
    Predicate& predicate = predicates_[update.p];
    List* out = predicate.out.lists ? &predicate.out.lists[update.s] : nullptr;
    List* in = predicate.in.lists ? &predicate.in.lists[update.o] : nullptr;
    if (!in || (out && out->size() <= in->size()) ? out->find(update.o) != kNone : in->find(update.s) != kNone)
      return false;
    if (out) out->append(update.o);
    if (in) in->append(update.s);
    return true;
  }

  template <class Search>
  void apply(const Update& update, Search& search) {
    Predicate& predicate = predicates_[update.p];
    if (update.op > 0) {
      if (insert(update)) trigger(predicate, update, search);
      return;
    }
    List* out = predicate.out.lists ? &predicate.out.lists[update.s] : nullptr;
    List* in = predicate.in.lists ? &predicate.in.lists[update.o] : nullptr;
    const int in_out = out ? out->find(update.o) : kNone;
    const int in_in = in && (!out || in_out != kNone) ? in->find(update.s) : kNone;
    if (in_out == kNone && in_in == kNone) return;
    trigger(predicate, update, search);
    if (out) out->remove_at(in_out);
    if (in) in->remove_at(in_in);
  }

 private:
  template <class Search>
  void trigger(const Predicate& predicate, const Update& update, Search& search) {
    for (const Trigger& trigger : predicate.triggers)
      if (unifies(trigger, update)) search.run(trigger, update);
  }

  bool unifies(const Trigger& trigger, const Update& update) const {
    const auto matches = [this](int node, int value) {
      return node < query_.variables || query_.constants[node - query_.variables] == value;
    };
    return matches(trigger.pattern.subject, update.s) && matches(trigger.pattern.object, update.o);
  }

  void need(Direction& direction) {
    if (direction.lists) return;
    const std::size_t bytes = std::max<std::size_t>(nodes_, 1) * sizeof(List);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);  // zeros: empty lists
    if (memory == MAP_FAILED) throw std::bad_alloc();
    direction.lists = static_cast<List*>(memory);
  }

  void add_trigger(std::size_t index) {
    Trigger trigger;
    trigger.pattern = query_.patterns[index];
    unsigned bound = 1u << trigger.pattern.subject | 1u << trigger.pattern.object;
    for (int node = query_.variables; node < query_.nodes(); ++node) bound |= 1u << node;
    for (int node = 0; node < query_.nodes(); ++node)
      if (bound >> node & 1) trigger.bound.push_back(node);
    for (int node = 0; node < query_.variables; ++node) {
      if (bound >> node & 1) continue;
      const auto touches = [node](const Pattern& p) { return p.subject == node || p.object == node; };
      if (std::count_if(query_.patterns.begin(), query_.patterns.end(), touches) > 1)
        trigger.inner |= 1u << node;
      else
        trigger.leaves.push_back(node);
    }
    for (std::size_t other = 0; other < query_.patterns.size(); ++other) {
      if (other == index) continue;
      const Pattern& pattern = query_.patterns[other];
      Predicate& predicate = predicates_[pattern.predicate];
      const bool is_after = other > index && pattern.predicate == trigger.pattern.predicate;
      if ((bound >> pattern.subject & 1) && (bound >> pattern.object & 1)) {
        const bool forward = predicate.out.lists || !predicate.in.lists;
        Direction& direction = forward ? predicate.out : predicate.in;
        need(direction);
        trigger.checks.push_back({direction.lists, forward ? pattern.subject : pattern.object,
                                  forward ? pattern.object : pattern.subject, is_after, forward});
        continue;
      }
      if (can_be_first(bound, pattern.subject, pattern.object)) {
        need(predicate.out);
        trigger.steps[pattern.subject].push_back({predicate.out.lists, pattern.object, is_after, true});
      }
      if (can_be_first(bound, pattern.object, pattern.subject)) {
        need(predicate.in);
        trigger.steps[pattern.object].push_back({predicate.in.lists, pattern.subject, is_after, false});
      }
    }
    for (int node = 0; node < query_.variables; ++node)
      if (!(reachable(bound, kNone) >> node & 1)) throw std::runtime_error("the query is not connected");
    predicates_[trigger.pattern.predicate].triggers.push_back(std::move(trigger));
  }

  // Whether some order binds `node` while `other` is unbound.
  bool can_be_first(unsigned bound, int node, int other) const {
    return !(bound >> other & 1) && (reachable(bound, other) >> node & 1);
  }

  unsigned reachable(unsigned bound, int avoiding) const {
    for (unsigned before = 0; before != bound;) {
      before = bound;
      for (const Pattern& pattern : query_.patterns) {
        if (pattern.subject == avoiding || pattern.object == avoiding) continue;
        if (bound >> pattern.subject & 1) bound |= 1u << pattern.object;
        if (bound >> pattern.object & 1) bound |= 1u << pattern.subject;
      }
    }
    return bound;
  }

  const Query& query_;
  int nodes_;
  std::vector<Predicate> predicates_;
};

int number(const std::string& word) {
  std::size_t used = 0;
  int value = kNone;
  try {
    value = std::stoi(word.substr(1), &used);
  } catch (const std::exception&) {
  }
  if (value < 0 || used + 1 != word.size()) throw std::runtime_error("not v, p or c and a number: " + word);
  return value;
}

Query read_query(const char* path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  std::vector<std::vector<std::string>> rows;
  Query query;
  std::map<int, int> variables;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<std::string> row{std::istream_iterator<std::string>(words), {}};
    if (row.empty()) continue;
    if (row.size() != 3 || row[1][0] != 'p') throw std::runtime_error("not a pattern like `v0 p1 v1`: " + line);
    for (int end : {0, 2})
      if (row[end][0] == 'v') variables[number(row[end])] = 0;
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  }
  query.variables = static_cast<int>(variables.size());
  if (rows.empty() || query.variables == 0 || query.variables > kMaxVariables)
    throw std::runtime_error("the query must have 1 to 8 variables");
  if (variables.rbegin()->first != query.variables - 1) throw std::runtime_error("variables must be v0, v1, … without a gap");
  const auto node = [&query](const std::string& word) {
    if (word[0] == 'v') return number(word);
    if (word[0] != 'c') throw std::runtime_error("neither a variable nor a constant: " + word);
    const auto place = std::find(query.constants.begin(), query.constants.end(), number(word));
    const int index = static_cast<int>(place - query.constants.begin());
    if (place == query.constants.end()) query.constants.push_back(number(word));
    return query.variables + index;
  };
  for (const auto& row : rows) query.patterns.push_back({node(row[0]), number(row[1]), node(row[2])});
  for (const Pattern& pattern : query.patterns)
    if (pattern.subject == pattern.object) throw std::runtime_error("a variable stands twice in one pattern");
  if (query.nodes() > kMaxNodes) throw std::runtime_error("too many constants");
  return query;
}

std::vector<Update> read_updates(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  std::fseek(file, 0, SEEK_END);
  std::vector<Update> updates(std::ftell(file) / sizeof(Update));
  std::rewind(file);
  const std::size_t read = std::fread(updates.data(), sizeof(Update), updates.size(), file);
  std::fclose(file);
  if (read != updates.size()) throw std::runtime_error(std::string("cannot read all of ") + path);
  return updates;
}

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

template <int kVariables>
void run(const Query& query, const std::vector<Update>& initial, const std::vector<Update>& updates) {
  int nodes = 0;
  for (const auto* rows : {&initial, &updates})
    for (const Update& row : *rows) nodes = std::max({nodes, row.s + 1, row.o + 1});
  for (int constant : query.constants) nodes = std::max(nodes, constant + 1);
  Program program(query, nodes);
  Output output(kVariables);
  Search<kVariables> search(query, output);
  for (const Update& row : initial)
    if (program.is_relevant(row)) program.insert(row);

  long long relevant = 0;
  double seconds = 0, started = cpu_seconds();
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const Update& update = updates[i];
    if (!program.is_relevant(update)) continue;
    ++relevant;
    program.apply(update, search);
    output.end_message(static_cast<int>(i + 1), update.op);
    if (output.is_full()) {
      seconds += cpu_seconds() - started;
      output.consume();
      started = cpu_seconds();
    }
  }
  seconds += cpu_seconds() - started;
  output.consume();

  std::printf("{\"messages\": %zu, \"relevant\": %lld, ", updates.size(), relevant);
  output.print();
  std::printf("\"evaluate_s\": %.6f, \"us_per_relevant\": %.4f, \"deltas_per_relevant\": %.4f}\n", seconds,
              relevant ? seconds * 1e6 / relevant : 0.0, relevant ? 1.0 * output.deltas() / relevant : 0.0);
}

template <int kVariables>
void dispatch(const Query& query, const std::vector<Update>& initial, const std::vector<Update>& updates) {
  if (query.variables == kVariables) return run<kVariables>(query, initial, updates);
  if constexpr (kVariables < kMaxVariables) dispatch<kVariables + 1>(query, initial, updates);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: yardstick QUERY INITIAL UPDATES\n");
    return 2;
  }
  try {
    dispatch<1>(read_query(arguments[1]), read_updates(arguments[2]), read_updates(arguments[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "yardstick: %s\n", error.what());
    return 1;
  }
  return 0;
}
