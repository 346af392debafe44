#!/usr/bin/env python3
"""lint.words finds what it is for, and nothing else."""
import unittest

from words import look_at


def words(count):
    return " ".join(["word"] * count)


class WordsTest(unittest.TestCase):
    def finds(self, document, *expected):
        found = look_at("x.md", document)
        self.assertEqual(len(found), len(expected), found)
        for line, start in zip(found, expected):
            self.assertTrue(line.startswith(start), line)

    def test_a_long_sentence_has_its_line(self):
        short = "A b.\n" * 9
        self.finds(f"{short}\n{words(30)}. A b.\n")
        self.finds(f"{short}\n{words(20)}\n{words(11)}. A b.\n", "x.md:11: a sentence of 31 words")

    def test_a_long_cell(self):
        sentences = f"{words(20)}. {words(20)}"
        row = "| a |" * 5 + " {} |\n"
        self.finds(f"{row.format(sentences)}")
        self.finds(f"{row.format(sentences + '. A')}", "x.md:1: a cell of 41 words")

    def test_the_average(self):
        self.finds(f"{words(14)}. {words(14)}.\n")
        self.finds(f"{words(14)}. {words(15)}.\n", "x.md: sentences have 14.5 words")

    def test_items_and_paragraphs_end_sentences(self):
        self.finds(f"- {words(14)}\n- {words(14)}\n  \n1. {words(14)}\n\n{words(14)}\n# {words(40)}\n{words(14)}\n")

    def test_code_and_urls_are_a_word(self):
        self.finds(f"{words(11)} `{words(40)}` https://a.b/{'c/' * 40} [d](e f).\n")
        self.finds(f"{words(12)} `{words(40)}` https://a.b/ [d](e f).\n", "x.md: sentences have 15.0 words")
        self.finds(f"{words(13)}:\n```sh\n{words(40)}. {words(40)}\n```\n")
        self.finds(f"{words(14)}:\n```sh\n{words(40)}. {words(40)}\n```\n", "x.md: sentences have 15.0 words")

    def test_dots_within_words_end_nothing(self):
        self.finds(f"{words(10)} 1.5 a.b {words(3)}.\n", "x.md: sentences have 15.0 words")


unittest.main()
