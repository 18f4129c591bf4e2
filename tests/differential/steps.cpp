// Draws the operations of a play, without knowing what becomes of them.

#include "differential/steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "differential/drawn_claim.hpp"
#include "differential/drawn_tokens.hpp"
#include "support/actions.hpp"

namespace mailroom::test {
namespace {

constexpr std::size_t length = 110;
constexpr int writers = 3;
constexpr int sleeper = writers;    ///< a writer whose transaction never ends
constexpr int flood_size = 10'050;  ///< more than a claim reads

/// What a seed is about.
enum class Theme {
  late_commits,
  rates,
  filter,          ///< tokens of one action, and a gap at all times: without one, the way of a claim may vary
  filter_no_gaps,  ///< the same without open transactions, so that the usual claim is used
};

class Drawer {
 public:
  explicit Drawer(unsigned seed)
      : chance_(seed), theme_(static_cast<Theme>((seed - 1) % 4)), floods_(seed % 8 == 1) {
    drawn_.senders = chance_.below(8);
    drawn_.exact = theme_ != Theme::filter_no_gaps;
    drawn_.checks_all_gaps = theme_ == Theme::filter;
  }

  Steps draw() {
    if (theme_ == Theme::filter) leave_sleeper();
    if (filters()) define();
    while (drawn_.steps.size() < length)
      draw_one();
    return std::move(drawn_);
  }

 private:
  struct Choice {
    unsigned weight;
    void (Drawer::*draw)();
  };

  bool filters() const { return theme_ == Theme::filter || theme_ == Theme::filter_no_gaps; }
  bool has_late_commits() const { return theme_ != Theme::filter_no_gaps; }

  void draw_one() {
    if (floods_ && drawn_.steps.size() > length / 2) return flood();
    static constexpr std::array<Choice, 21> choices{{{12, &Drawer::insert_and_commit},
                                                     {14, &Drawer::insert},
                                                     {9, &Drawer::commit},
                                                     {4, &Drawer::roll_back},
                                                     {42, &Drawer::claim},
                                                     {6, &Drawer::listen},
                                                     {7, &Drawer::arrange},
                                                     {3, &Drawer::connect},
                                                     {3, &Drawer::disconnect},
                                                     {4, &Drawer::terminate},
                                                     {7, &Drawer::pass},
                                                     {3, &Drawer::rewind},
                                                     {3, &Drawer::replay},
                                                     {2, &Drawer::pause},
                                                     {3, &Drawer::define},
                                                     {2, &Drawer::consume},
                                                     {2, &Drawer::suspend},
                                                     {2, &Drawer::remove},
                                                     {3, &Drawer::fetch_again},
                                                     {4, &Drawer::overtake},
                                                     {1, &Drawer::wear_out}}};
    unsigned total = 0;
    for (const auto& choice : choices)
      total += choice.weight;
    auto drawn = chance_.below(total);
    for (const auto& choice : choices) {
      if (drawn < choice.weight) return (this->*choice.draw)();
      drawn -= choice.weight;
    }
  }

  template <typename Run>
  void add(std::string text, Run run) {
    drawn_.steps.push_back({std::move(text), std::move(run)});
  }
  /// For an operation that shows nothing itself.
  template <typename Act>
  void act(std::string text, Act action) {
    add(std::move(text), [action](Play& play) {
      action(play.world());
      return std::string();
    });
  }
  /// An operation of a random client.
  template <typename Do>
  void by_client(const std::string& what, Do run) {
    const int client = chance_.from(0, Play::clients - 1);
    add(fmt::format("client {} {}", client, what), [=](Play& play) { return run(play, client); });
  }

  void leave_sleeper() {
    insert_by(sleeper, activation_action());
    insert_by(0, activation_action());
    commit_of(0, std::nullopt);
    add("client 0 claims", [](Play& play) { return play.claim(0, {.limit = 5}); });
  }

  const queue::Action* some_action() { return chance_.one_in(3) ? recovery_action() : activation_action(); }
  int some_writer() { return chance_.from(0, writers - 1); }
  std::optional<int> some_lifetime() {
    if (!has_late_commits() || !chance_.one_in(3)) return std::nullopt;
    return chance_.from(-1, 3);
  }

  void insert_by(int writer, const queue::Action* action) {
    const auto id = tokens_.draw(writer);
    add(fmt::format("writer {} inserts {}, {}", writer, id, action->name),
        [=](Play& play) { return std::to_string(play.world().insert(writer, action)); });
  }
  void insert() {
    if (!has_late_commits()) return insert_and_commit();
    insert_by(some_writer(), some_action());
  }
  void insert_and_commit() {
    const int writer = some_writer();
    for (int left = chance_.from(1, 4); left > 0; --left)
      insert_by(writer, some_action());
    if (!has_late_commits() && chance_.one_in(20)) return roll_back_of(writer);
    commit_of(writer, some_lifetime());
  }
  void commit_of(int writer, std::optional<int> lifetime) {
    tokens_.commit(writer, lifetime);
    const auto until = lifetime ? fmt::format("for {} units", *lifetime) : std::string("for ever");
    act(fmt::format("writer {} commits, {}", writer, until),
        [=](QueueWorld& world) { world.commit(writer, lifetime); });
  }
  void roll_back_of(int writer) {
    tokens_.roll_back(writer);
    act(fmt::format("writer {} rolls back", writer), [=](QueueWorld& world) { world.roll_back(writer); });
  }
  void commit() {
    const int writer = some_writer();
    if (tokens_.is_open(writer)) commit_of(writer, some_lifetime());
  }
  void roll_back() {
    const int writer = some_writer();
    if (tokens_.is_open(writer)) roll_back_of(writer);
  }
  void flood() {
    floods_ = false;
    tokens_.skip(flood_size);
    act(fmt::format("{} tokens are inserted that have expired", flood_size),
        [](QueueWorld& world) { world.flood(flood_size); });
  }

  void claim() {
    const auto claim = draw_claim(chance_, drawn_.steps.size());
    by_client("claims " + text_of(claim), [=](Play& play, int client) { return play.claim(client, claim); });
  }
  /// Both attempts at a batch say what became of its tokens, the first one last.
  void overtake() {
    using enum PlayedClaim::Receipt;
    const int client = chance_.from(0, Play::clients - 1);
    for (const auto receipt : {none, none, newest, overtaken}) {
      auto claim = draw_claim(chance_, drawn_.steps.size());
      claim.limit = receipt == none ? 4 : 0;
      claim.partial = true;
      claim.routine = claim.holds = claim.without_lock = false;
      claim.receipt = receipt;
      add(fmt::format("client {} claims {}", client, text_of(claim)),
          [=](Play& play) { return play.claim(client, claim); });
    }
  }
  void wear_out() {
    by_client("loses 21 replies", [](Play& play, int client) { return play.wear_out(client); });
  }
  void fetch_again() {
    by_client("fetches again", [](Play& play, int client) { return play.fetch_again(client); });
  }
  void listen() {
    by_client("asks what it has heard", [](Play& play, int client) { return play.listen(client); });
  }
  void connect() {
    by_client("connects", [](Play& play, int client) { return play.connect(client); });
  }
  void disconnect() {
    by_client("disconnects", [](Play& play, int client) { return play.disconnect(client); });
  }
  void terminate() {
    by_client("loses its session", [](Play& play, int client) { return play.terminate(client); });
  }
  void arrange() {
    using enum claim::Waking;
    static constexpr std::array wakings{stay_polling, stay_polling, start_listening, drain, ask, ask};
    static constexpr std::array names{"wants to poll", "listens from now on", "has the others drain",
                                      "asks for open inserts"};
    const auto waking = chance_.of(wakings);
    by_client(names.at(static_cast<std::size_t>(waking)),
              [=](Play& play, int client) { return play.arrange(client, waking); });
  }

  void pass() {
    const int units = chance_.from(1, 3);
    tokens_.pass(units);
    act(fmt::format("{} units pass", units), [=](QueueWorld& world) { world.pass(units); });
  }

  void rewind() {
    const auto last = tokens_.last_id();
    const auto back = static_cast<int>(chance_.one_in(4) ? last : std::min<std::int64_t>(last, 12));
    auto target = chance_.one_in(10) ? last + 1 : last - chance_.from(0, back);
    // A move from below the sleeper's token to above it would forget its gap.
    if (theme_ == Theme::filter) target = std::max<std::int64_t>(target, 1);
    add(fmt::format("the cursor is set to {}", target), [=](Play& play) { return play.rewind(target); });
  }
  void replay() {
    Ids some;
    for (const auto id : tokens_.due()) {
      if (chance_.one_in(4) && some.size() < 9) some.push_back(id);
    }
    add(fmt::format("{} are replayed", fmt::join(some, " ")), [=](Play& play) { return play.replay(some); });
  }
  void pause() {
    const bool paused = chance_.one_in(2);
    set_paused(paused);
    if (!paused) return;
    for (int left = chance_.from(1, 4); left > 0; --left)
      claim();
    set_paused(false);
  }
  void set_paused(bool paused) {
    add(paused ? "the queue is paused" : "the queue is resumed",
        [=](Play& play) { return play.pause(paused); });
  }
  void define() {
    // Without gaps both worlds may have read to different ids, and new actions apply to what is read later.
    if (theme_ == Theme::filter_no_gaps) rewind();
    PlayedDefinition definition;
    if (filters() && !chance_.one_in(4)) definition.actions = std::set{some_action()};
    if (theme_ == Theme::rates ? !chance_.one_in(4) : chance_.one_in(4)) {
      definition.gap = chance_.from(1, 2);
      definition.burst = chance_.from(1, 8);
    }
    act("the queue takes " + text_of(definition), [=](QueueWorld& world) { world.define(definition); });
  }

  /// Calls `run` with a random committed token.
  template <typename Do>
  void on_token(const Do& run) {
    auto& tokens = tokens_.committed();
    if (!tokens.empty()) run(tokens.begin() + chance_.from(0, static_cast<int>(tokens.size()) - 1));
  }
  void consume() {
    if (!drawn_.exact) return;
    on_token([&](auto token) {
      token->is_consumed = true;
      act(fmt::format("{} is consumed", token->id),
          [id = token->id](QueueWorld& world) { world.consume(id); });
    });
  }
  void suspend() {
    on_token([&](auto token) {
      act(fmt::format("the account of {} is suspended", token->id),
          [id = token->id](QueueWorld& world) { world.suspend_account_of(id); });
    });
  }
  void remove() {
    if (!has_late_commits() && !chance_.one_in(3)) return;
    on_token([&](auto token) {
      act(fmt::format("{} is deleted", token->id), [id = token->id](QueueWorld& world) { world.remove(id); });
      tokens_.committed().erase(token);
    });
  }

  Chance chance_;
  Theme theme_;
  bool floods_;
  Steps drawn_;
  DrawnTokens tokens_;
};

}  // namespace

Steps draw_steps(unsigned seed) {
  return Drawer(seed).draw();
}

}  // namespace mailroom::test
