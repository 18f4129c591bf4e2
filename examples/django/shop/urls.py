"""Which page is where. Django's own views reset a password; the backend of settings.py makes their mail a message."""

from django.contrib.auth import views as auth
from django.urls import path

from shop import views

urlpatterns = [
    path('signup', views.SignUp.as_view()),
    path('confirm', views.Confirm.as_view()),
    path('login', views.SignIn.as_view()),
    path('magic_link', views.MagicLink.as_view()),
    path('orders', views.Orders.as_view()),
    path('reset', auth.PasswordResetView.as_view(template_name='form.html', email_template_name='reset.txt',
                                                 subject_template_name='reset.subject')),
    path('reset/done', auth.PasswordResetDoneView.as_view(template_name='done.html'), name='password_reset_done'),
    path('reset/<uidb64>/<token>', auth.PasswordResetConfirmView.as_view(template_name='form.html', success_url='/reset/done'),
         name='password_reset_confirm'),
]
