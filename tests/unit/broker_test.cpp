// What URLs and answers of brokers mean.
#include "carriers/broker.hpp"

#include "base/error.hpp"
#include "carriers/amqp/answer.hpp"
#include "carriers/nats/answer.hpp"
#include "support/catch.hpp"

namespace mailroom::test::broker_test {
namespace {

const std::vector<config::UrlScheme> schemes{{"nats", 4222}, {"tls", 4222}};

std::string refusal_of_url(const std::string& text) {
  try {
    carriers::parse_broker_url(text, schemes);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::configuration);
    return error.what();
  }
  return "no error";
}

nats::NatsAnswer error_of(int code, const std::string& text) {
  return {.kind = nats::NatsAnswer::Kind::error, .code = code, .text = text};
}

delivery::Verdict verdict_of(const nats::NatsAnswer& answer) {
  return nats::judge_nats_answer(answer, "MAILROOM", "mailroom.news.activation").verdict;
}

}  // namespace

TEST_CASE("servers of a broker are read from a URL") {
  const auto url = carriers::parse_broker_url(
      "NATS://alice%40mail.example@a.example,b.example:4333, nats://[2001:db8::1]:1/x%20y", schemes);
  CHECK(url.scheme == "nats");
  CHECK(url.user == "alice@mail.example");
  CHECK(url.path == "x y");
  CHECK(url.servers ==
        std::vector<config::ServerAddress>{{"a.example", 4222}, {"b.example", 4333}, {"2001:db8::1", 1}});
  CHECK(url.addresses() == "a.example:4222,b.example:4333,[2001:db8::1]:1");
  CHECK(config::ServerAddress{"127.0.0.9", 1}.is_loopback());
  CHECK_FALSE(config::ServerAddress{"10.0.0.1", 1}.is_loopback());
}

TEST_CASE("the setting that has a wrong URL is named, and a password without a scheme is not") {
  try {
    carriers::parse_broker_url("alice:secret@host:8222", {{"http", 8222}}, "sink.monitor");
    FAIL("it was taken");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) == "sink.monitor '***@host:8222' does not begin with http://");
    CHECK(error.hint() == "write it as http://host, or http://user@host:port,host2:port");
  }
}

TEST_CASE("other URLs of a broker are refused, without their passwords") {
  CHECK(refusal_of_url("nats://alice:secret@host") == "sink.to 'nats://***@host' contains a password");
  CHECK(refusal_of_url("nats://a,b@host") == "sink.to 'nats://***@host' has no valid user before the @");
  CHECK(refusal_of_url("nats://%zz@host") == "sink.to 'nats://***@host' has no valid user before the @");
  CHECK(refusal_of_url("nats://") == "sink.to 'nats://' names no host");
  CHECK(refusal_of_url("nats://a,,b") == "sink.to 'nats://a,,b' names no host");
  CHECK(refusal_of_url("nats://a:0") ==
        "sink.to 'nats://a:0' has no port between 1 and 65535 after the colon");
  CHECK(refusal_of_url("nats://a:65536") ==
        "sink.to 'nats://a:65536' has no port between 1 and 65535 after the colon");
  CHECK(refusal_of_url("nats://a b") ==
        "sink.to 'nats://a b' has a host that is neither a name nor an address");
  CHECK(refusal_of_url("nats://[::1") == "sink.to 'nats://[:***' has no IPv6 address in its brackets");
  CHECK(refusal_of_url("nats://a?x") == "sink.to 'nats://a?x' continues after its servers");
  CHECK(refusal_of_url("stan://a") == "sink.to 'stan://a' does not begin with nats:// or tls://");
}

TEST_CASE("an acknowledgement of JetStream counts only with a sequence") {
  CHECK(verdict_of({.kind = nats::NatsAnswer::Kind::stored, .sequence = 7}) == delivery::Verdict::accepted);
  CHECK(verdict_of({.kind = nats::NatsAnswer::Kind::stored, .sequence = 7, .duplicate = true}) ==
        delivery::Verdict::accepted);
  CHECK(verdict_of({.kind = nats::NatsAnswer::Kind::stored, .sequence = 0, .duplicate = true}) ==
        delivery::Verdict::unknown);
  CHECK(verdict_of({.kind = nats::NatsAnswer::Kind::no_answer}) == delivery::Verdict::unknown);
  CHECK(verdict_of({.kind = nats::NatsAnswer::Kind::no_responders}) == delivery::Verdict::unavailable);
}

TEST_CASE("an error of JetStream is a refusal only where the line was not stored") {
  CHECK(verdict_of(error_of(10054, "message size exceeds maximum allowed")) == delivery::Verdict::rejected);
  CHECK(verdict_of(error_of(10077, "maximum bytes exceeded")) == delivery::Verdict::unavailable);
  CHECK(verdict_of(error_of(10047, "insufficient storage resources available")) ==
        delivery::Verdict::unavailable);
  CHECK(verdict_of(error_of(10060, "expected stream does not match")) == delivery::Verdict::unavailable);
  CHECK(verdict_of(error_of(10077, "store is closed")) == delivery::Verdict::unknown);
  CHECK(verdict_of(error_of(10158, "duplicate message id is in process")) == delivery::Verdict::unknown);
}

TEST_CASE("subjects of NATS are compared by their parts") {
  CHECK(nats::nats_subject_matches("mailroom.>", "mailroom.news.mixed"));
  CHECK(nats::nats_subject_matches("mailroom.*.mixed", "mailroom.news.mixed"));
  CHECK_FALSE(nats::nats_subject_matches("mailroom.>", "mailroom"));
  CHECK_FALSE(nats::nats_subject_matches("mailroom.*", "mailroom.news.mixed"));
  CHECK_FALSE(nats::nats_subject_matches("mailroom.news.mixed.more", "mailroom.news.mixed"));
  CHECK(nats::nats_subject_part("news letter.a>*") == "news_letter_a__");
  CHECK(carriers::filled_name("a.{queue}.{action}.{x}", "{action}", "mixed") == "a.{action}.mixed.{x}");
}

TEST_CASE("what RabbitMQ says when it closes a channel") {
  const std::string large = "PRECONDITION_FAILED - message size 2000 is larger than configured max size 1000";
  CHECK(amqp::amqp_size_limit(large) == 1000);
  CHECK_FALSE(amqp::amqp_size_limit("ACCESS_REFUSED").has_value());
  CHECK(amqp::judge_amqp_close(406, large, 2000, true) == delivery::Verdict::rejected);
  CHECK(amqp::judge_amqp_close(406, large, 1000, true) == delivery::Verdict::unknown);
  CHECK(amqp::judge_amqp_close(403, "ACCESS_REFUSED", 10, false) == delivery::Verdict::unavailable);
  CHECK(amqp::judge_amqp_close(403, "ACCESS_REFUSED", 10, true) == delivery::Verdict::unknown);
  CHECK(amqp::judge_amqp_close(320, "CONNECTION_FORCED", 10, false) == delivery::Verdict::unknown);
}

}  // namespace mailroom::test::broker_test
