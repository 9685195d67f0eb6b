"""How the screen looks: sizes and places. Nothing is said by colour alone."""

SMALLEST = (60, 16)  # columns, lines

CSS = """
Screen { layout: vertical; background: $background; }
#top { height: 1; background: $panel; text-style: bold; }
#middle { height: 1fr; }
#queue { width: 36%; min-width: 24; max-width: 48; border-right: solid $panel; overflow-x: hidden;
  scrollbar-gutter: stable; scrollbar-size-vertical: 1; }
#right { width: 1fr; padding: 0 0 0 1; }
#what { height: 1; text-style: bold; }
#plan, #dry { height: 1fr; }
Text { scrollbar-size-vertical: 1; scrollbar-gutter: stable; overflow-x: hidden; }
#status { height: auto; min-height: 1; max-height: 2; }
.buttons { height: 1; }
.buttons Button { min-width: 0; width: auto; padding: 0 1; margin: 0; }
#small { display: none; padding: 1; height: 1fr; }
ModalScreen { align: center middle; }
#dialog { width: 90%; max-width: 76; height: auto; max-height: 90%; border: round $primary; padding: 0 1;
  background: $surface; }
#dialog #title { text-style: bold; }
#dialog Text { height: auto; max-height: 12; min-height: 1; }
#dialog Input { border: none; height: 1; background: $boost; padding: 0; }
#dialog #trouble { height: auto; text-style: bold; }
"""
