"""Tasks of an inbox and of posts."""

from __future__ import annotations

import re

from support.miniwob.episodes import Episode


def _thread_of(sender: str) -> str:
    return f"xpath=//div[@id='main']/div[@class='email-thread'][.//div[@class='email-sender'][.='{sender}']]"


def _people(episode: Episode) -> list[str]:
    """Return the senders in the inbox that the task names, in the order of its text."""
    words = re.sub(r'"[^"]*"', "", episode.query)
    senders = {line for line in episode.text("#main").split("\n") if line and line in words}
    found = {match.start(): name for name in senders for match in re.finditer(rf"{name}(?=s?\b)", words)}
    return [found[place] for place in sorted(found)]


def _sender(episode: Episode, people: list[str]) -> str:
    """Return the person whose message the task is about."""
    for pattern in (r"(?:from|by) {}\b", r"{}(?:'s| sent)"):
        for name in people:
            if re.search(pattern.format(name), episode.query):
                return name
    return people[0]


def _recipient(episode: Episode, sender: str, people: list[str]) -> str:
    others = [name for name in people if name != sender]
    return others[0] if others else episode.groups_of(r"email to (.+)\.$")[0]


def handle_the_message(episode: Episode) -> None:
    people = _people(episode)
    sender = _sender(episode, people)
    thread = _thread_of(sender)
    message = episode.quoted()
    if message:
        _reply(episode, thread, message[0])
    elif re.search("delet|trash|rid of|remov|don't want|out of my inbox|throw|recycl", episode.query, re.IGNORECASE):
        episode.click(f"{thread}//span[@class='trash']")
    elif re.search(r"\b(imi?p|star\b|mark|flag)", episode.query, re.IGNORECASE):
        episode.click(f"{thread}//span[@class='star']")
    else:
        _forward(episode, thread, _recipient(episode, sender, people))


def _reply(episode: Episode, thread: str, message: str) -> None:
    episode.click(thread)
    episode.click(".email-reply")
    episode.fill("#reply-text", message)
    episode.click("#send-reply")


def _forward(episode: Episode, thread: str, recipient: str) -> None:
    episode.click(thread)
    episode.click(".email-forward")
    episode.fill(".forward-sender", recipient)
    episode.click("#send-forward")


def _posts_of(user: str) -> str:
    return f"xpath=//div[@class='media'][.//span[@class='username'][.='{user}']]"


def use_a_button_of_a_post(episode: Episode) -> None:
    (user,) = episode.groups_of(r"For the user (\S+),")
    action = episode.quoted()[0]
    post = _posts_of(user)
    if action in ("Reply", "Retweet", "Like"):
        episode.click(f"{post}//span[@class='{action.lower()}']")
    else:
        episode.click(f"{post}//span[@class='more']")
        episode.click(f"{post}//li[starts-with(., '{action}')]")


def use_a_button_of_several_posts(episode: Episode) -> None:
    number, user = episode.groups_of(r"on (all|\d+) posts? by (\S+) and")
    button = f"{_posts_of(user)}//span[@class='{episode.quoted()[0].lower()}']"
    wanted = episode.count(button) if number == "all" else int(number)
    for _ in range(wanted):
        episode.click(button)  # The class of a clicked button is another.
    episode.click_named("button", "Submit")
