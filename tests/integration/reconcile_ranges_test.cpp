// How many ranges the record of a queue has: what is alike is read as one.

#include "reconcile/recorded_ranges.hpp"
#include "support/catch.hpp"
#include "support/reconcile_rig.hpp"

namespace mailroom::test::reconcile_ranges_test {
namespace {

/// Thirty batches of one token each, claimed within one second and emitted within the next.
struct AlikeBatches : ReconcileRig {
  AlikeBatches() {
    insert_accounts(*connection, 30);
    drain(1);
    hand(
        "UPDATE mailroom_batches SET claimed_at = date_trunc('second', now()) + id * interval '10 ms', "
        "emitted_at = date_trunc('second', now()) + interval '1 s' + id * interval '10 ms'");
  }

  /// `1-9:b1 10:b10`: what batches took as their claims passed it, and the first of these batches.
  std::string claims() {
    std::string text;
    connection->transact([&](pqxx::work& transaction) {
      reconcile::read_recorded_ranges(transaction, reconcile::read_claim_record(transaction, "mailroom", 0),
                                      [&](const reconcile::RecordedRange& range) {
                                        if (range.kind != reconcile::RangeKind::claim) return;
                                        text += fmt::format(
                                            "{}{}:b{}", text.empty() ? "" : " ",
                                            selection::id_range_text({range.first, range.end}), range.source);
                                      });
    });
    return text;
  }
};

}  // namespace

TEST_CASE("batches one after the other are read as one range", "[reconcile]") {
  AlikeBatches rig;
  CHECK(rig.claims() == "1-30:b1");
  CHECK(rig.classes() == "30 emitted");
}

TEST_CASE("a batch that differs from its neighbours is a range of its own", "[reconcile]") {
  struct Case {
    std::string hand, claims, classes;
  };
  const std::vector<Case> cases{
      {"UPDATE mailroom_batches SET attempts = 2 WHERE id = 10", "1-9:b1 10:b10 11-30:b11",
       "29 emitted, 1 emitted_again"},
      {"UPDATE mailroom_batches SET attempts = 2 WHERE id IN (1, 30)", "1:b1 2-29:b2 30:b30",
       "28 emitted, 2 emitted_again"},
      {"UPDATE mailroom_batches SET claimed_at = claimed_at + interval '1 s' WHERE id > 20",
       "1-20:b1 21-30:b21", "30 emitted"},
      {"UPDATE mailroom_batches SET emitted_at = emitted_at + interval '1 s' WHERE id IN (5, 6)",
       "1-4:b1 5-6:b5 7-30:b7", "30 emitted"},
      {"UPDATE mailroom_batches SET emitted_at = NULL WHERE id = 30", "1-29:b1 30:b30",
       "29 emitted, 1 leased"},
      {"UPDATE mailroom_batches SET emitted_at = NULL, dead_at = now() WHERE id = 7", "1-6:b1 7:b7 8-30:b8",
       "29 emitted, 1 dead"},
      {"UPDATE mailroom_batches SET claimed_by = 'mailroom send@host' WHERE id = 3", "1-2:b1 3:b3 4-30:b4",
       "29 emitted, 1 unexplained"},
      {"DELETE FROM mailroom_batches WHERE id = 25", "1-24:b1 27-30:b27", "29 emitted, 1 unexplained"},
      {"UPDATE mailroom_batches SET ids = '{}' WHERE id = 12", "1-11:b1 13-30:b13",
       "29 emitted, 1 unexplained"},
      {"UPDATE mailroom_batches SET claimed_at = 'infinity' WHERE id = 8", "1-7:b1 8:b8 9-30:b9",
       "30 emitted"},
  };
  for (const auto& [hand, claims, classes] : cases) {
    AlikeBatches rig;
    rig.hand(hand);
    CAPTURE(hand);
    CHECK(rig.claims() == claims);
    CHECK(rig.classes() == classes);
  }
}

TEST_CASE("batches are kept apart where their numbers or the output of consumers are compared",
          "[reconcile]") {
  AlikeBatches rig;
  rig.hand(
      "INSERT INTO mailroom_deliveries (queue, token, state, batch) "
      "SELECT 'mailroom', g, 'accepted', g FROM generate_series(1, 30) g");
  std::string apart = "1:b1";
  for (int i = 2; i <= 30; ++i)
    apart += fmt::format(" {0}:b{0}", i);
  CHECK(rig.claims() == apart);
}

TEST_CASE("a replay within the second of the batches is told apart from them", "[reconcile]") {
  AlikeBatches rig;
  rig.hand("SELECT FROM mailroom_rewind('mailroom', 10, 100, '{}')");
  rig.drain(1);
  CHECK(rig.classes() == "10 emitted, 20 emitted_again");
  rig.hand("DELETE FROM mailroom_operations");
  CHECK(rig.classes() == "10 emitted, 20 unexplained");
  CHECK(rig.unexplained() == "11-30");
}

}  // namespace mailroom::test::reconcile_ranges_test
