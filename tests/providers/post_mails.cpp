// post_mails URL MAILS IN_FLIGHT: posts as many mails to a server in place of Amazon SES, so many at the same
// time over connections that are kept, by libcurl and nothing else; the requests are made before. Prints the
// seconds that it took.

#include <chrono>
#include <cstdlib>
#include <curl/curl.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "carriers/ses/carrier.hpp"

namespace {

std::size_t ignore(char* /*bytes*/, std::size_t size, std::size_t count, void* /*self*/) {
  return size * count;
}

std::string body_of(int number) {
  // As `mailroom send` composes them.
  const auto mail = fmt::format(
      "Date: Fri, 27 Nov 2026 12:00:00 +0000\r\nFrom: no-reply@app.example\r\nTo: user{0}@mail.example\r\n"
      "Subject: mail {0}\r\nMessage-ID: <mailroom.4WR9kLq2.m{0}.mailroom@app.example>\r\n"
      "Auto-Submitted: auto-generated\r\nX-Auto-Response-Suppress: All\r\nMIME-Version: 1.0\r\n"
      "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\ntext {0}\r\n",
      number);
  mailroom::delivery::Message message{.queue = "mailroom", .tokens = {number}, .body = mail};
  message.envelope.to = fmt::format("user{}@mail.example", number);
  return mailroom::ses::ses_body(message, {});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string url = std::string(argv[1]) + "/v2/email/outbound-emails";
  const int mails = std::atoi(argv[2]);
  const int in_flight = std::atoi(argv[3]);
  std::vector<std::string> bodies;
  for (int i = 0; i < mails; ++i)
    bodies.push_back(body_of(i));
  curl_global_init(CURL_GLOBAL_DEFAULT);
  CURLM* multi = curl_multi_init();
  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
  headers = curl_slist_append(
      headers, "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261127/eu-west-1/ses/aws4_request");
  headers = curl_slist_append(headers, "Expect:");
  const auto began = std::chrono::steady_clock::now();
  int begun = 0;
  int failed = 0;
  const auto begin = [&](CURL* easy) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, bodies[static_cast<std::size_t>(begun)].data());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE,
                     static_cast<long>(bodies[static_cast<std::size_t>(begun)].size()));
    ++begun;
    curl_multi_add_handle(multi, easy);
  };
  for (int i = 0; i < in_flight && begun < mails; ++i) {
    CURL* easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &ignore);
    begin(easy);
  }
  for (int running = 1, done = 0; done < mails;) {
    curl_multi_perform(multi, &running);
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
      CURL* easy = message->easy_handle;
      long status = 0;
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
      if (message->data.result != CURLE_OK || status != 200) ++failed;
      ++done;
      curl_multi_remove_handle(multi, easy);
      if (begun < mails) begin(easy);
    }
    if (done < mails) curl_multi_poll(multi, nullptr, 0, 1000, nullptr);
  }
  fmt::print("{:.3f}\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  return failed == 0 ? 0 : 1;
}
